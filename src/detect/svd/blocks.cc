#include "detect/svd/blocks.h"

#include "base/check.h"

#include <bit>
#include <utility>

#include <malloc.h>

namespace heddle::svd {

Blocks::Blocks(std::uint32_t block_size)
    : block_shift_(static_cast<unsigned>(std::countr_zero(block_size))) {
  HEDDLE_CHECK(std::has_single_bit(block_size) && block_size <= 64);
}

void Blocks::go_to(ThreadId thread) {
  if (thread >= nearest_.size()) {
    nearest_.resize(thread + 1);
    planes_of_.resize(thread + 1, 0);
  }
  if (nearest_[thread] == nullptr) nearest_[thread] = std::make_unique<NearPages>();
  near_ = nearest_[thread]->pages.data();
  near_mask_ = nearest_[thread]->pages.size() - 1;
  current_ = thread;
}

// A table that is too small is replaced by a larger one, which fills as pages are used.
void Blocks::missed(ThreadId thread) {
  NearPages& nearest = *nearest_[thread];
  const std::size_t count = nearest.pages.size();
  if (++nearest.missed < 4 * count || count >= kMostNear) return;
  bytes_ -= nearest.bytes();
  nearest = {std::vector<Near>(4 * count), 0};
  bytes_ += nearest.bytes();
  go_to(thread);
}

// No thread may go on using what it knew of the page.
void Blocks::far(std::uint64_t number, const Page& page) {
  for (const Plane& plane : page.planes) far(number, plane);
}

// The same of one thread.
void Blocks::far(std::uint64_t number, const Plane& plane) {
  if (plane.thread >= nearest_.size() || nearest_[plane.thread] == nullptr) return;
  Near& near = nearest_[plane.thread]->at(number);
  if (near.begin == number << kPageShift) near = {};
}

// Who else is there.
void Blocks::look_around(Near& near) {
  const std::vector<Plane>& planes = near.page->planes;
  std::size_t others = 0;
  near.others.fill(near.cells);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    if (i == near.plane || planes[i].asleep) continue;
    near.others[others++ % near.others.size()] = planes[i].cells.get();
  }
  near.always_calm = others == 0 ? 3u << 5 : 0;
}

void Blocks::put_to_sleep(Near& near, CellKinds calm) {
  Page& page = *near.page;
  page.told = 0;
  for (std::size_t i = 0; i < page.planes.size(); ++i) {
    Plane& plane = page.planes[i];
    const std::span cells(plane.cells.get(), page.cell_count());
    if (i == near.plane || plane.asleep || !std::all_of(cells.begin(), cells.end(), [&](Cell cell) {
          return cell.unit == 0 || calm.has(cell);
        })) {
      continue;
    }
    // When it wakes up, it has to tell the others.
    for (Cell& cell : cells) cell.calm = 0;
    plane.asleep = true;
    far(near.begin >> kPageShift, plane);
  }
  look_around(near);
}

Blocks::Near& Blocks::find(ThreadId thread, std::uint64_t number) {
  std::unique_ptr<Page>& found = pages_[number];
  if (found == nullptr) {
    found = std::make_unique<Page>();
    found->shift = std::max(block_shift_, kWordShift);
  }
  Page& page = *found;
  std::size_t plane = 0;
  while (plane < page.planes.size() && page.planes[plane].thread != thread) ++plane;
  if (plane == page.planes.size()) {
    page.visited = page.visited || plane != 0;
    drop_planes(number, page, [&](const Plane& old) { return gone(old.thread); });
    far(number, page);
    plane = page.planes.size();
    page.planes.push_back({thread, false, std::make_unique<Cell[]>(page.cell_count()), nullptr});
    ++planes_of_[thread];
    bytes_ += bytes_of(page.planes.back(), page);
  } else if (page.planes[plane].asleep) {
    far(number, page);
    page.planes[plane].asleep = false;
  } else {
    missed(thread);
  }
  Near& near = near_[near_place(number)];
  near.begin = number << kPageShift;
  near.key = near.begin + (std::uint64_t{page.shift} << kKeyShift);
  near.cells = page.planes[plane].cells.get();
  near.accesses = page.planes[plane].accesses.get();
  near.one_cell = 0;
  // Parts of a cell are no whole; parts of a block are all of it.
  for (unsigned shift = page.shift == block_shift_ ? 0 : page.shift; shift <= page.shift; ++shift) {
    if (shift < 6) near.one_cell |= static_cast<std::uint8_t>(1u << shift);
  }
  near.page = &page;
  near.plane = static_cast<std::uint32_t>(plane);
  near.shift = static_cast<std::uint8_t>(page.shift);
  near.visited = page.visited;
  look_around(near);
  return near;
}

// Where the other threads' accesses are scattered, so will be this one's.
Accesses* Blocks::make_accesses(const Near& near) {
  Plane& plane = near.page->planes[near.plane];
  bytes_ -= bytes_of(plane, *near.page);
  const bool scattered = std::any_of(
      near.page->planes.begin(), near.page->planes.end(),
      [](const Plane& other) { return other.accesses != nullptr && !other.accesses->is_short(); });
  plane.accesses = std::make_unique<Accesses>(near.page->cell_count(), scattered, *codes_);
  bytes_ += bytes_of(plane, *near.page);
  return plane.accesses.get();
}

// Every block of a cell gets a copy of it.
void Blocks::split(std::uint64_t number, Page& page) {
  far(number, page);
  const std::uint64_t count = kPageBytes >> block_shift_;
  const unsigned copies_shift = page.shift - block_shift_;
  for (Plane& plane : page.planes) {
    bytes_ -= bytes_of(plane, page);
    auto cells = std::make_unique<Cell[]>(count);
    for (std::uint64_t i = 0; i < count; ++i) cells[i] = plane.cells[i >> copies_shift];
    plane.cells = std::move(cells);
    if (plane.accesses != nullptr)
      plane.accesses =
          std::make_unique<Accesses>(plane.accesses->split(1u << copies_shift, *codes_));
  }
  page.shift = block_shift_;
  for (const Plane& plane : page.planes) bytes_ += bytes_of(plane, page);
}

// Whether any plane is left.
template <typename Drop>
bool Blocks::drop_planes(std::uint64_t number, Page& page, Drop drop) {
  const auto dropped = [&](const Plane& plane) {
    if (!drop(plane)) return false;
    --planes_of_[plane.thread];
    bytes_ -= bytes_of(plane, page);
    return true;
  };
  if (std::none_of(page.planes.begin(), page.planes.end(), drop)) return !page.planes.empty();
  far(number, page);
  std::erase_if(page.planes, dropped);
  return !page.planes.empty();
}

void Blocks::forget(Address address, std::uint64_t size) {
  if (size == 0 || address + size < address) return;
  const Address end = address + size;
  // Whether nothing is left of the page.
  const auto forget_in = [&](std::uint64_t number, Page& page) {
    const Address begin = std::max(address, number << kPageShift);
    const Address stop = std::min(end, (number + 1) << kPageShift);
    if (stop - begin == kPageBytes)
      return !drop_planes(number, page, [](const Plane&) { return true; });
    const std::uint64_t part = (1ull << page.shift) - 1;
    if (page.shift > block_shift_ && ((begin | stop) & part) != 0) split(number, page);
    const std::uint64_t first = (begin & (kPageBytes - 1)) >> page.shift;
    const std::uint64_t last = ((stop - 1) & (kPageBytes - 1)) >> page.shift;
    for (Plane& plane : page.planes) std::fill(&plane.cells[first], &plane.cells[last] + 1, Cell());
    return false;
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
  for (const std::uint64_t number : whole) pages_.erase(number);
}

void Blocks::drop(ThreadId thread) {
  if (thread >= gone_.size()) gone_.resize(thread + 1, false);
  gone_[thread] = true;
  if (thread >= nearest_.size() || nearest_[thread] == nullptr) return;
  bytes_ -= nearest_[thread]->bytes();
  nearest_[thread] = nullptr;
  if (current_ == thread) current_ = ~0u;
  if (planes_of_[thread] <= pages_.size() / 8) return;
  const std::size_t before = bytes_;
  drop_idle_planes();
  if (before - bytes_ > kMuch) give_back();
}

Cell Blocks::cell_at(ThreadId thread, Address address) const {
  const auto page = pages_.find(address >> kPageShift);
  if (page == pages_.end()) return Cell();
  for (const Plane& plane : page->second->planes) {
    if (plane.thread == thread) return plane.cells[cell_of(address, page->second->shift)];
  }
  return Cell();
}

void Blocks::drop_idle_planes() {
  const auto is_idle = [&](const Plane& plane, std::size_t count) {
    if (gone(plane.thread)) return true;
    return std::all_of(plane.cells.get(), plane.cells.get() + count,
                       [](Cell cell) { return cell.unit == 0; });
  };
  for (auto at = pages_.begin(); at != pages_.end();) {
    const auto next = std::next(at);
    Page& page = *at->second;
    const std::size_t count = page.cell_count();
    if (!drop_planes(at->first, page, [&](const Plane& plane) { return is_idle(plane, count); }))
      pages_.erase(at);
    at = next;
  }
}

// What planes and their accesses leave is of little use to anything else, and would stay with the
// process.
void Blocks::give_back() {
  malloc_trim(0);
}

}  // namespace heddle::svd
