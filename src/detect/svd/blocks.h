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
// Data that one thread sets up and others use is in lists for good, yet after the first access of a
// stretch the others' views have nothing more to learn: they know that the block is shared, and a
// write has been noted. The cell then says for whom that holds, and where that thread's view is.
//
// Programs use mostly words of eight bytes, blocks are four by default. A page therefore starts
// with cells of eight bytes and is split into cells of the block size by the first access that
// covers only a part of one. Until then the blocks of a cell have seen the same accesses and are in
// the same state, because an access treats all of its blocks alike.
#pragma once

#include "detect/svd/pool.h"
#include "detect/svd/units.h"
#include "trace/event.h"

#include <algorithm>
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
  std::uint64_t input : 1 {};  // the unit read it before it wrote it
  std::uint64_t noted : 1 {};  // since that access another thread's has been noted in the unit
  // Not a view but a list: `unit` is its first entry. Of `thread`, the last to access it, the view
  // is entry `context`; `noted` and `input` say that its reads, and its writes too, are calm.
  std::uint64_t several : 1 {};

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

// Which further accesses of other threads change nothing in a view.
enum class Calm : std::uint8_t { kNone, kReads, kAll };

class Blocks {
 public:
  explicit Blocks(std::uint32_t block_size);

  // Calls visit(View& cell) for every cell that the range touches. The visitor may change cells
  // and lists.
  template <typename Visit>
  void for_each_cell(Address address, std::uint64_t size, Visit visit);

  // The cell of an access that touches one only; nullptr when it touches several.
  View* only_cell(Address address, std::uint32_t size) {
    const Cached& here = page(address >> kPageShift);
    const std::uint64_t part = (1ull << here.shift) - 1;
    const bool whole = ((address | size) & part) == 0
                           ? size == part + 1
                           : here.shift == block_shift_ && (address & part) + size <= part + 1;
    if (!whole) return nullptr;
    return here.cells + ((address & (kPageBytes - 1)) >> here.shift);
  }

  // The thread's view if no other thread's needs to be told of its access; else nullptr.
  View* own_if_calm(View& cell, ThreadId thread, bool writes) {
    if (cell.thread != thread) return nullptr;
    if (cell.several == 0) return &cell;
    if ((writes ? cell.input : cell.noted) == 0) return nullptr;
    return &entries_[cell.context].view;
  }

  // The thread's view. `tell(View&)` is called for every other thread's; `live(View&)` says whether
  // a view is still worth keeping, before and after it was told; `calm(View&)` what it need not be
  // told from then on.
  template <typename Live, typename Tell, typename IsCalm>
  View& own(View& cell, ThreadId thread, Live live, Tell tell, IsCalm calm);

  // The range was handed out or given back.
  void forget(Address address, std::uint64_t size);

  template <typename Visit>  // visit(View&, address of its block, bytes)
  void for_each_view(Visit visit);

  std::size_t bytes() const;

 private:
  static constexpr unsigned kPageShift = 13;
  static constexpr std::uint64_t kPageBytes = 1u << kPageShift;
  static constexpr unsigned kWordShift = 3;
  static constexpr std::uint64_t kMaxBytesPerAccess = 1u << 18;
  static constexpr std::size_t kCached = 1024;

  struct Entry {
    View view;
    std::uint32_t next = 0;
  };
  struct Page {
    unsigned shift = 0;
    std::unique_ptr<View[]> cells;
  };
  // What an access needs of a page that was used lately.
  struct Cached {
    std::uint64_t number = ~0ull;
    View* cells = nullptr;
    Page* page = nullptr;
    unsigned shift = 0;
  };

  const Cached& page(std::uint64_t number) {
    const Cached& cached = cache_[number % kCached];
    return cached.number == number ? cached : find(number);
  }
  const Cached& find(std::uint64_t number);
  Page& find_page(std::uint64_t number);
  void split(std::uint64_t number, Page& page);
  void clear(View& cell);
  std::uint32_t new_entry(const View& view, std::uint32_t next);
  void free_list(std::uint32_t first);
  View& remember_own(View& cell, ThreadId thread, std::uint32_t entry, Calm calm) {
    cell.context = entry;
    cell.thread = thread & kMaxThread;
    cell.noted = calm != Calm::kNone;
    cell.input = calm == Calm::kAll;
    return entries_[entry].view;
  }

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
    Page& here = *page(number).page;
    const std::uint64_t part = (1ull << here.shift) - 1;
    if (here.shift > block_shift_ && (((address | stop) & part) != 0)) split(number, here);
    const std::uint64_t first = (address & (kPageBytes - 1)) >> here.shift;
    const std::uint64_t last = ((stop - 1) & (kPageBytes - 1)) >> here.shift;
    for (std::uint64_t i = first; i <= last; ++i) visit(here.cells[i]);
    address = stop;
  }
}

template <typename Live, typename Tell, typename IsCalm>
View& Blocks::own(View& cell, ThreadId thread, Live live, Tell tell, IsCalm calm) {
  if (cell.several == 0) {
    if (cell.thread == thread) return cell;
    if (live(cell)) {
      tell(cell);
      if (live(cell)) {
        const Calm calm_now = calm(cell);
        const std::uint32_t other = new_entry(cell, 0);
        cell = View();
        cell.several = 1;
        cell.unit = new_entry(View::idle(thread), other);
        return remember_own(cell, thread, cell.unit, calm_now);
      }
    }
    return cell = View::idle(thread);
  }
  std::uint32_t mine = 0;
  Calm all = Calm::kAll;
  std::uint32_t* link = &cell.unit;
  std::size_t left = 0;
  while (*link != 0) {
    Entry& entry = entries_[*link];
    bool keep = true;
    if (entry.view.thread == thread) {
      mine = *link;
    } else {
      keep = live(entry.view);
      if (keep) {
        tell(entry.view);
        keep = live(entry.view);
      }
      if (keep) all = std::min(all, calm(entry.view));
    }
    if (keep) {
      ++left;
      link = &entry.next;
    } else {
      free_entries_.push_back(*link);
      *link = entry.next;
    }
  }
  if (mine == 0) {
    if (left == 0) return cell = View::idle(thread);
    cell.unit = mine = new_entry(View::idle(thread), cell.unit);
    return remember_own(cell, thread, mine, all);
  }
  if (left > 1) return remember_own(cell, thread, mine, all);
  free_entries_.push_back(mine);
  return cell = View(entries_[mine].view);
}

template <typename Visit>
void Blocks::for_each_view(Visit visit) {
  for (auto& [number, page] : pages_) {
    for (std::uint64_t i = 0; i < (kPageBytes >> page->shift); ++i) {
      View& cell = page->cells[i];
      const Address address = (number << kPageShift) + (i << page->shift);
      const std::uint32_t bytes = 1u << page->shift;
      if (cell.several == 0) {
        visit(cell, address, bytes);
        continue;
      }
      for (std::uint32_t at = cell.unit; at != 0; at = entries_[at].next)
        visit(entries_[at].view, address, bytes);
    }
  }
}

}  // namespace heddle::svd
