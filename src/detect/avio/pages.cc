#include "detect/avio/pages.h"

#include "base/check.h"

#include <algorithm>

#include <sys/mman.h>

namespace heddle::avio {
namespace {

constexpr std::uint8_t kAllBytes = 0xff;
constexpr Address kPageSize = Address{1} << kPageBits;

}  // namespace

Pages::Pages(Histories& histories) : histories_(histories) {
  void* const table =
      mmap(nullptr, sizeof(Chunk*) << (kAddressBits - kChunkBits), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HEDDLE_CHECK(table != MAP_FAILED);
  table_ = static_cast<Chunk**>(table);
}

Pages::~Pages() {
  munmap(static_cast<void*>(table_), sizeof(Chunk*) << (kAddressBits - kChunkBits));
}

Pages::Chunk* Pages::find_chunk(std::uint64_t number) const {
  if (number >> (kAddressBits - kChunkBits) == 0) return table_[number];
  const auto at = far_.find(number);
  return at != far_.end() ? at->second : nullptr;
}

Pages::Chunk& Pages::chunk(std::uint64_t number) {
  if (Chunk* const known = find_chunk(number)) return *known;
  auto* const chunk = take<Chunk>(1);
  (number >> (kAddressBits - kChunkBits) == 0 ? table_[number] : far_[number]) = chunk;
  chunks_.emplace_back(number, chunk);
  return *chunk;
}

Page& Pages::find_or_make(Address address, bool whole) {
  Page& page = chunk(address >> kChunkBits).pages[address >> kPageBits & (kChunkPages - 1)];
  if (!page.exists()) {
    auto* const last = take<Stamp>(whole ? kPageCells : 2 * kPageCells);
    page.last_ = reinterpret_cast<std::uint64_t>(last) | (whole ? 0 : 1);
  }
  return page;
}

History* Pages::make_histories(Page& page) {
  page.histories_ = take<History>(page.locations());
  return page.histories_;
}

void Pages::split(Page& page) {
  const Page before = page;
  auto* const last = take<Stamp>(2 * kPageCells);
  page.last_ = reinterpret_cast<std::uint64_t>(last) | 1;
  for (std::size_t n = 0; n < kPageCells; ++n) {
    last[2 * n] = before.last()[n];
    last[2 * n + 1] = last[2 * n] != 0 ? kWhole : 0;
  }
  arena_.give_back(before.last(), kPageCells * sizeof(Stamp));
  if (before.histories_ == nullptr) return;
  make_histories(page);
  for (std::size_t n = 0; n < kPageCells; ++n) page.histories_[2 * n] = before.histories_[n];
  arena_.give_back(before.histories_, kPageCells * sizeof(History));
}

void Pages::split_cell(Page& page, std::size_t cell) {
  Stamp* const last = page.last() + 2 * cell;
  last[1] = last[0];
  if ((last[0] & kHasHistory) == 0) return;
  History* const histories = page.histories_ + 2 * cell;
  histories[1] = histories_.copy(histories[0]);
}

ByteCell& Pages::by_bytes(Page& page, std::size_t half) {
  Stamp& last = page.last()[half];
  if (is_by_bytes(last)) return byte_cell(last);
  const std::uint32_t index = byte_cells_.add(arena_);
  HEDDLE_CHECK(index + Stamp{2} < kFirstStamp);
  ByteCell& cell = byte_cells_[index];
  cell.last.fill(last);
  if ((last & kHasHistory) != 0) {
    History& history = page.histories_[half];
    for (History& of_byte : std::span(histories_of(cell), cell.last.size())) {
      of_byte = histories_.copy(history);
    }
    histories_.drop(history);
  }
  last = index + Stamp{2};
  return cell;
}

// Forgets a location that is not kept by bytes.
void Pages::clear(Page& page, std::size_t location) {
  Stamp& last = page.last()[location];
  if ((last & kHasHistory) != 0) histories_.drop(page.histories_[location]);
  last = 0;
}

void Pages::forget_half(Page& page, std::size_t half, std::uint8_t mask) {
  Stamp& last = page.last()[half];
  if (last == 0 || mask == 0) return;
  if (!is_by_bytes(last) && mask == 0xf) return clear(page, half);
  ByteCell& cell = by_bytes(page, half);
  for (unsigned n = 0; n < cell.last.size(); ++n) {
    if ((mask >> n & 1) == 0) continue;
    if ((cell.last[n] & kHasHistory) != 0) histories_.drop(cell.histories[n]);
    cell.last[n] = 0;
  }
  if (cell.last != ByteCell().last) return;
  if (cell.histories != nullptr) {
    arena_.give_back(cell.histories, cell.last.size() * sizeof(History));
  }
  cell = ByteCell();
  byte_cells_.remove(static_cast<std::uint32_t>(last - 2));
  last = 0;
}

void Pages::forget_cell(Page& page, std::size_t cell, std::uint8_t mask) {
  if (!page.halves()) {
    if (page.last()[cell] == 0) return;
    if (mask == kAllBytes) return clear(page, cell);
    split(page);
  }
  Stamp* const last = page.last() + 2 * cell;
  if (last[1] == kWhole) {
    if (mask == kAllBytes) {
      last[1] = 0;
      return clear(page, 2 * cell);
    }
    split_cell(page, cell);
  }
  forget_half(page, 2 * cell, mask & 0xf);
  forget_half(page, 2 * cell + 1, mask >> 4);
}

void Pages::drop(Page& page) {
  if (page.halves() || page.histories_ != nullptr) {
    for (std::size_t n = 0; n < kPageCells; ++n) forget_cell(page, n, kAllBytes);
  }
  arena_.give_back(page.last(), page.locations() * sizeof(Stamp));
  if (page.histories_ != nullptr) {
    arena_.give_back(page.histories_, page.locations() * sizeof(History));
  }
  page = Page();
}

void Pages::forget_in_chunk(Chunk& chunk, Address first, Address last) {
  const std::size_t first_page = first >> kPageBits & (kChunkPages - 1);
  const std::size_t last_page = last >> kPageBits & (kChunkPages - 1);
  for (std::size_t n = first_page; n <= last_page; ++n) {
    Page& page = chunk.pages[n];
    if (!page.exists()) continue;
    const Address from = n == first_page ? first % kPageSize : 0;
    const Address to = n == last_page ? last % kPageSize : kPageSize - 1;
    if (from == 0 && to == kPageSize - 1) {
      drop(page);
      continue;
    }
    for (std::size_t cell = from >> kCellBits; cell <= to >> kCellBits; ++cell) {
      const unsigned low = cell == from >> kCellBits ? from & 7 : 0;
      const unsigned high = cell == to >> kCellBits ? to & 7 : 7;
      forget_cell(page, cell, static_cast<std::uint8_t>((0xffu << low) & (0xffu >> (7 - high))));
    }
  }
}

void Pages::forget(Address first, Address last) {
  const auto in_chunk = [&](std::uint64_t number, Chunk& chunk) {
    const Address base = number << kChunkBits;
    const Address end = base + ((Address{1} << kChunkBits) - 1);
    forget_in_chunk(chunk, std::max(first, base), std::min(last, end));
  };
  const std::uint64_t first_chunk = first >> kChunkBits;
  const std::uint64_t last_chunk = last >> kChunkBits;
  if (last_chunk - first_chunk < chunks_.size()) {
    for (std::uint64_t number = first_chunk; number <= last_chunk; ++number) {
      if (Chunk* const chunk = find_chunk(number)) in_chunk(number, *chunk);
    }
    return;
  }
  for (const auto& [number, chunk] : chunks_) {
    if (number >= first_chunk && number <= last_chunk) in_chunk(number, *chunk);
  }
}

void Pages::forget_everything() {
  for (const auto& [number, chunk] : chunks_) {
    if (number >> (kAddressBits - kChunkBits) == 0) table_[number] = nullptr;
  }
  far_.clear();
  chunks_.clear();
  byte_cells_ = Pool<ByteCell>();
  arena_ = Arena();
}

std::size_t Pages::shared() const {
  std::size_t count = 0;
  const auto add = [&](std::span<const Stamp> stamps) {
    for (const Stamp last : stamps) {
      if (last >= kFirstStamp) {
        count += last & kHasHistory;
      } else if (is_by_bytes(last)) {
        for (const Stamp byte : byte_cells_[static_cast<std::uint32_t>(last - 2)].last) {
          count += byte & kHasHistory;
        }
      }
    }
  };
  for (const auto& [number, chunk] : chunks_) {
    for (const Page& page : chunk->pages) {
      if (page.exists()) add({page.last(), page.locations()});
    }
  }
  return count;
}

}  // namespace heddle::avio
