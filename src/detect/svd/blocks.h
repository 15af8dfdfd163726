// What every thread knows about every block of memory, in shadow pages.
//
// A block has a state for each thread (svd-2005, section 4.2). Almost every block is used by one
// thread only, so a shadow page holds one cell for each block, and the cell holds that thread's
// view. When a second thread comes, the views move to a list and the cell points to it; when the
// list is down to one again, it moves back.
//
// A view whose unit has ended is Idle and as good as none; views of threads that have ended are
// dropped as they are met. Memory that is freed takes its shadow with it.
//
// Programs use mostly words of eight bytes, blocks are four by default. A page therefore starts
// with cells of eight bytes and is split into cells of the block size by the first access that
// covers only a part of one. Until then the blocks of a cell have seen the same accesses and are in
// the same state, because an access treats all of its blocks alike.
#pragma once

#include "detect/svd/pool.h"
#include "detect/svd/units.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

enum class BlockState : std::uint8_t {
  kIdle,
  kLoaded,
  kLoadedShared,
  kStored,
  kStoredShared,
  kTrueDep
};

using ContextId = std::uint32_t;

// One thread's view of a block. All zero: Idle.
struct View {
  UnitId unit{};                  // the owner; 0 = none
  ContextId context{};            // of the access below: its statement, stack and locks
  std::uint64_t ordinal : 41 {};  // the unit's first read if it is an input, else its last store
  std::uint64_t thread : 17 {};
  std::uint64_t state : 3 {};
  std::uint64_t input : 1 {};    // the unit read it before it wrote it
  std::uint64_t noted : 1 {};    // since that access another thread's has been noted in the unit
  std::uint64_t several : 1 {};  // not a view: `unit` is the first entry of a list

  static View idle(ThreadId thread) {
    View out;
    out.thread = thread & ((1u << 17) - 1);
    return out;
  }
  BlockState block_state() const { return static_cast<BlockState>(state); }
  void set(BlockState next) { state = static_cast<std::uint64_t>(next) & 7; }
};
static_assert(sizeof(View) == 16);

inline constexpr ThreadId kMaxThread = (1u << 17) - 1;

class Blocks {
 public:
  explicit Blocks(std::uint32_t block_size);

  // Calls visit(View& cell) for every cell that the range touches. The visitor may change cells
  // and lists.
  template <typename Visit>
  void for_each_cell(Address address, std::uint64_t size, Visit visit);

  // The thread's view. `tell(View&)` is called for every other thread's; `live(View&)` says whether
  // a view is still worth keeping, before and after it was told.
  template <typename Live, typename Tell>
  View& own(View& cell, ThreadId thread, Live live, Tell tell);

  // The range was handed out or given back.
  void forget(Address address, std::uint64_t size);

  template <typename Visit>
  void for_each_view(Visit visit);

  std::size_t bytes() const;

 private:
  static constexpr unsigned kPageShift = 12;
  static constexpr std::uint64_t kPageBytes = 1u << kPageShift;
  static constexpr unsigned kWordShift = 3;
  static constexpr std::uint64_t kMaxBytesPerAccess = 1u << 18;
  static constexpr std::size_t kCached = 256;

  struct Entry {
    View view;
    std::uint32_t next = 0;
  };
  struct Page {
    unsigned shift = 0;
    std::unique_ptr<View[]> cells;
  };
  struct Cached {
    std::uint64_t number = ~0ull;
    Page* page = nullptr;
  };

  Page& page(std::uint64_t number) {
    Cached& cached = cache_[number % kCached];
    if (cached.number != number) cached = {number, &find_page(number)};
    return *cached.page;
  }
  Page& find_page(std::uint64_t number);
  void split(Page& page);
  void clear(View& cell);
  std::uint32_t new_entry(const View& view, std::uint32_t next);
  void free_list(std::uint32_t first);

  unsigned block_shift_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Cached, kCached> cache_;
  Pool<Entry> entries_;
  std::vector<std::uint32_t> free_entries_;
};

template <typename Visit>
void Blocks::for_each_cell(Address address, std::uint64_t size, Visit visit) {
  if (size == 0) size = 1;
  if (size > kMaxBytesPerAccess) size = kMaxBytesPerAccess;
  if (address + size < address) return;
  const Address end = address + size;
  while (address < end) {
    const std::uint64_t number = address >> kPageShift;
    const Address stop = std::min(end, (number + 1) << kPageShift);
    Page& here = page(number);
    const std::uint64_t part = (1ull << here.shift) - 1;
    if (here.shift > block_shift_ && (((address | stop) & part) != 0)) split(here);
    const std::uint64_t first = (address & (kPageBytes - 1)) >> here.shift;
    const std::uint64_t last = ((stop - 1) & (kPageBytes - 1)) >> here.shift;
    for (std::uint64_t i = first; i <= last; ++i) visit(here.cells[i]);
    address = stop;
  }
}

template <typename Live, typename Tell>
View& Blocks::own(View& cell, ThreadId thread, Live live, Tell tell) {
  if (cell.several == 0) {
    if (cell.thread == thread) return cell;
    if (live(cell)) {
      tell(cell);
      if (live(cell)) {
        const std::uint32_t other = new_entry(cell, 0);
        cell = View();
        cell.several = 1;
        cell.unit = new_entry(View::idle(thread), other);
        return entries_[cell.unit].view;
      }
    }
    return cell = View::idle(thread);
  }
  View* mine = nullptr;
  std::uint32_t* link = &cell.unit;
  std::size_t left = 0;
  while (*link != 0) {
    Entry& entry = entries_[*link];
    bool keep = true;
    if (entry.view.thread == thread) {
      mine = &entry.view;
    } else {
      keep = live(entry.view);
      if (keep) {
        tell(entry.view);
        keep = live(entry.view);
      }
    }
    if (keep) {
      ++left;
      link = &entry.next;
    } else {
      free_entries_.push_back(*link);
      *link = entry.next;
    }
  }
  if (mine == nullptr) {
    if (left == 0) return cell = View::idle(thread);
    cell.unit = new_entry(View::idle(thread), cell.unit);
    return entries_[cell.unit].view;
  }
  if (left > 1) return *mine;
  free_entries_.push_back(cell.unit);
  return cell = View(*mine);
}

template <typename Visit>
void Blocks::for_each_view(Visit visit) {
  for (auto& [number, page] : pages_) {
    for (std::uint64_t i = 0; i < (kPageBytes >> page->shift); ++i) {
      View& cell = page->cells[i];
      if (cell.several == 0) {
        visit(cell);
        continue;
      }
      for (std::uint32_t at = cell.unit; at != 0; at = entries_[at].next) visit(entries_[at].view);
    }
  }
}

}  // namespace heddle::svd
