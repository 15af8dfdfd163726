// The accesses to every byte that can still race, in one cache line for most variables.
//
// For each byte we need the latest accesses that no later one stands for (race_engine.h has the
// rule). Neighbouring bytes are mostly accessed together, so a Cell stands for a run of bytes of
// one aligned 8-byte word with the same history; an access to a part of a run splits it. The result
// is that of one history per byte.
//
// A cell holds the latest plain write and the latest plain read. Whatever else can still race
// (further readers of shared data, atomic accesses, accesses that raced) is in a list on the side.
//
// Layout: pages of 4,096 bytes by hash, in a page one number per word: 0 = untouched, a cell, or
// (top bit) the eight cells of a word that was split.
#pragma once

#include "order/clocks.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::race {

struct Access {
  Time time{};  // 0 = none
  Slot slot{};
  SiteId site{};
  StackId stack{};
  LockSetId locks{};
};

// Which accesses conflict depends on these four.
enum class AccessClass : std::uint8_t { kRead, kWrite, kAtomicRead, kAtomicWrite };

struct Operation {
  EventKind kind{};
  MemoryOrder order{};
};

struct FurtherAccess {
  Access access;
  ClockId clock{};  // writes: what its thread knew
  AccessClass access_class{};
  Operation operation;
};

struct Cell {
  Access write;
  Access read;
  ClockId write_clock{};    // what the writer knew
  std::uint32_t further{};  // 0 = none, else a list
  std::uint8_t first{};     // the run's bytes in its word
  std::uint8_t last{};
  Operation write_operation;
  Operation read_operation;
  bool reported{};  // a race on these bytes was reported
};
static_assert(sizeof(Cell) == 64);

using CellId = std::uint32_t;  // 0 = none

class AccessHistory {
 public:
  AccessHistory();

  Cell& cell(CellId id) { return cells_[id]; }
  const Cell& cell(CellId id) const { return cells_[id]; }

  // The cell that covers exactly these bytes, if it exists already.
  CellId find_exactly(Address address, std::uint32_t size) {
    const auto first = static_cast<std::uint32_t>(address & 7);
    if (first + size > 8) return 0;
    Page* const page = find_page(address >> kPageBits);
    if (page == nullptr) return 0;
    const std::uint32_t entry = page->words[(address >> 3) & (kWordsPerPage - 1)];
    if (entry & kSplit) return 0;
    const Cell& found = cells_[entry];
    return found.first == first && found.last == first + size - 1 ? entry : 0;
  }

  // The cells that cover exactly these bytes, made where needed. `f(CellId, Address of first
  // byte)`; cell references are invalid after every call of this.
  template <typename F>
  void cover(Address address, std::uint64_t size, F&& f) {
    while (size != 0) {
      const auto first = static_cast<std::uint32_t>(address & 7);
      const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(8 - first, size));
      std::uint32_t& entry =
          make_page(address >> kPageBits).words[(address >> 3) & (kWordsPerPage - 1)];
      pieces_of(entry, first, first + bytes - 1);
      for (std::size_t i = 0; i < piece_count_; ++i) {
        f(pieces_[i], (address & ~Address{7}) + cells_[pieces_[i]].first);
      }
      address += bytes;
      size -= bytes;
    }
  }

  // Likewise, but only what was touched before: for freed memory.
  template <typename F>
  void cover_touched(Address address, std::uint64_t size, F&& f) {
    for_touched_words(address, size, [&](std::uint32_t&, Address at, std::uint64_t bytes) {
      cover(at, bytes, f);
    });
  }

  // Forgets these bytes.
  void clear(Address address, std::uint64_t size);

  std::vector<FurtherAccess>& further(Cell& cell);
  void drop_further(Cell& cell);

  template <typename F>
  void for_each_clock(F&& f) const {
    for (const Cell& cell : cells_) f(cell.write_clock);
    for (const std::vector<FurtherAccess>& list : further_) {
      for (const FurtherAccess& access : list) f(access.clock);
    }
  }

  std::size_t cells() const { return cells_.size() - free_cells_.size(); }

 private:
  static constexpr std::uint32_t kSplit = 0x80000000u;
  static constexpr unsigned kPageBits = 12;
  static constexpr std::size_t kWordsPerPage = 512;
  static constexpr std::size_t kRecent = 256;

  struct Page {
    std::array<std::uint32_t, kWordsPerPage> words{};
  };
  struct Recent {
    Address number = ~Address{0};
    Page* page = nullptr;
  };
  using SplitWord = std::array<CellId, 8>;  // by byte, 0 = untouched

  Page* find_page(Address number) {
    Recent& recent = recent_[number % kRecent];
    if (recent.number == number) return recent.page;
    const auto at = pages_.find(number);
    if (at == pages_.end()) return nullptr;
    recent = {number, at->second.get()};
    return recent.page;
  }
  Page& make_page(Address number);

  template <typename F>
  void for_touched_words(Address address, std::uint64_t size, F&& f);

  CellId new_cell(std::uint32_t first, std::uint32_t last);
  CellId copy_cell(CellId from);
  void free_cell(CellId id);
  void pieces_of(std::uint32_t& entry, std::uint32_t first, std::uint32_t last);
  void split_at(SplitWord& word, std::uint32_t byte);

  std::vector<Cell> cells_;
  std::vector<CellId> free_cells_;
  std::vector<SplitWord> splits_;
  std::vector<std::uint32_t> free_splits_;
  std::vector<std::vector<FurtherAccess>> further_;
  std::vector<std::uint32_t> free_further_;
  absl::flat_hash_map<Address, std::unique_ptr<Page>> pages_;
  std::vector<Recent> recent_;
  std::array<CellId, 8> pieces_{};
  std::size_t piece_count_ = 0;
};

template <typename F>
void AccessHistory::for_touched_words(Address address, std::uint64_t size, F&& f) {
  while (size != 0) {
    Page* const page = find_page(address >> kPageBits);
    const Address page_end = ((address >> kPageBits) + 1) << kPageBits;
    const std::uint64_t on_page = std::min<std::uint64_t>(page_end - address, size);
    for (std::uint64_t done = 0; page != nullptr && done < on_page;) {
      const Address at = address + done;
      const std::uint64_t bytes = std::min<std::uint64_t>(8 - (at & 7), on_page - done);
      std::uint32_t& entry = page->words[(at >> 3) & (kWordsPerPage - 1)];
      if (entry != 0) f(entry, at, bytes);
      done += bytes;
    }
    address += on_page;
    size -= on_page;
  }
}

}  // namespace heddle::race
