#include "detect/svd/blocks.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace heddle::svd {

Blocks::Blocks(std::uint32_t block_size)
    : block_shift_(static_cast<unsigned>(std::countr_zero(block_size))) {
  HEDDLE_CHECK(std::has_single_bit(block_size) && block_size <= 64);
  entries_.push_back({});  // number 0 ends a list
}

Blocks::Page& Blocks::find_page(std::uint64_t number) {
  std::unique_ptr<Page>& found = pages_[number];
  if (found == nullptr) {
    found = std::make_unique<Page>();
    found->shift = std::max(block_shift_, kWordShift);
    found->cells = std::make_unique<View[]>(kPageBytes >> found->shift);
  }
  return *found;
}

const Blocks::Cached& Blocks::find(std::uint64_t number) {
  Page& page = find_page(number);
  Cached& cached = cache_[number % kCached];
  cached = {number, page.cells.get(), &page, page.shift};
  return cached;
}

// Every block of a cell gets a copy of its view, or of its list of views.
void Blocks::split(std::uint64_t number, Page& page) {
  cache_[number % kCached] = {};
  const std::uint64_t count = kPageBytes >> block_shift_;
  const unsigned copies_shift = page.shift - block_shift_;
  auto cells = std::make_unique<View[]>(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const View& from = page.cells[i >> copies_shift];
    cells[i] = from;
    if (from.several == 0 || i % (1ull << copies_shift) == 0) continue;
    std::uint32_t copy = 0;
    for (std::uint32_t at = from.unit; at != 0; at = entries_[at].next)
      copy = new_entry(entries_[at].view, copy);
    cells[i].unit = copy;
    cells[i].noted = cells[i].input = 0;
  }
  page.cells = std::move(cells);
  page.shift = block_shift_;
}

std::uint32_t Blocks::new_entry(const View& view, std::uint32_t next) {
  if (free_entries_.empty()) return static_cast<std::uint32_t>(entries_.push_back({view, next}));
  const std::uint32_t index = free_entries_.back();
  free_entries_.pop_back();
  entries_[index] = {view, next};
  return index;
}

void Blocks::free_list(std::uint32_t first) {
  for (; first != 0; first = entries_[first].next) free_entries_.push_back(first);
}

void Blocks::clear(View& cell) {
  if (cell.several != 0) free_list(cell.unit);
  cell = View();
}

void Blocks::forget(Address address, std::uint64_t size) {
  if (size == 0 || address + size < address) return;
  const Address end = address + size;
  const auto forget_in = [&](std::uint64_t number, Page& page) {
    const Address begin = std::max(address, number << kPageShift);
    const Address stop = std::min(end, (number + 1) << kPageShift);
    const std::uint64_t part = (1ull << page.shift) - 1;
    if (page.shift > block_shift_ && ((begin | stop) & part) != 0) split(number, page);
    const std::uint64_t first = (begin & (kPageBytes - 1)) >> page.shift;
    const std::uint64_t last = ((stop - 1) & (kPageBytes - 1)) >> page.shift;
    for (std::uint64_t i = first; i <= last; ++i) clear(page.cells[i]);
    return stop - begin == kPageBytes;
  };
  const std::uint64_t first_page = address >> kPageShift;
  const std::uint64_t last_page = (end - 1) >> kPageShift;
  std::vector<std::uint64_t> whole;
  // Walk the pages of the range, or all pages when the range has more than there are.
  if (last_page - first_page < pages_.size()) {
    for (std::uint64_t number = first_page; number <= last_page; ++number) {
      const auto page = pages_.find(number);
      if (page != pages_.end() && forget_in(number, *page->second)) whole.push_back(number);
    }
  } else {
    for (const auto& [number, page] : pages_) {
      if (number >= first_page && number <= last_page && forget_in(number, *page))
        whole.push_back(number);
    }
  }
  for (const std::uint64_t number : whole) {
    pages_.erase(number);
    cache_[number % kCached] = {};
  }
}

std::size_t Blocks::bytes() const {
  std::size_t out = entries_.size() * sizeof(Entry);
  for (const auto& [number, page] : pages_)
    out += (kPageBytes >> page->shift) * sizeof(View) + sizeof(Page);
  return out;
}

}  // namespace heddle::svd
