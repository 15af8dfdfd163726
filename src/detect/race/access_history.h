// The accesses to every byte that can still race, in one cache line for most variables.
//
// For each byte we need the latest accesses that no later one stands for (race_engine.h has the
// rule). A cell holds the latest plain write and the latest plain read of its bytes
// (detect/piece_map.h). Whatever else can still race (further readers of shared data, atomic
// accesses, accesses that raced) is in a list on the side.
#pragma once

#include "detect/piece_map.h"
#include "order/clocks.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

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

// What a cell has no room for. Shared data has many readers: each finds its own entry at once.
class FurtherAccesses {
 public:
  const std::vector<FurtherAccess>& all() const { return all_; }
  bool empty() const { return all_.empty(); }
  bool has_writes() const { return writes_ != 0; }
  void add(const FurtherAccess& access);
  void clear();

  // The plain read of `slot`, to be replaced by a later one; null if there is none.
  FurtherAccess* read_of(Slot slot) {
    if (slot < read_of_slot_.size()) {
      const std::uint32_t at = read_of_slot_[slot];
      return at == 0 ? nullptr : &all_[at - 1];
    }
    return nullptr;
  }

  template <typename F>
  void remove_if(F&& f) {
    std::vector<FurtherAccess> kept;
    for (const FurtherAccess& access : all_) {
      if (!f(access)) kept.push_back(access);
    }
    if (kept.size() == all_.size()) return;
    clear();
    for (const FurtherAccess& access : kept) add(access);
  }

 private:
  std::vector<FurtherAccess> all_;
  std::vector<std::uint32_t> read_of_slot_;  // index in all_ plus one; 0 = none
  std::uint32_t writes_ = 0;
};

// A cache line.
struct alignas(64) Cell {
  Access write;
  Access read;
  ClockId write_clock{};    // what the writer knew
  std::uint32_t further{};  // 0 = none, else a list
  std::uint8_t first{};     // the bytes in their word
  std::uint8_t last{};
  Operation write_operation;
  Operation read_operation;
  bool reported{};  // a race on these bytes was reported
};
static_assert(sizeof(Cell) == 64);

class AccessHistory {
 public:
  AccessHistory() : pieces_(*this), further_(1) {}

  PieceMap<Cell, AccessHistory>& pieces() { return pieces_; }
  const PieceMap<Cell, AccessHistory>& pieces() const { return pieces_; }
  Cell& cell(CellId id) { return pieces_[id]; }
  std::size_t cells() const { return pieces_.size(); }

  // The list of the cell, made if it has none.
  FurtherAccesses& further(Cell& cell);
  FurtherAccesses& existing(const Cell& cell) { return further_[cell.further]; }
  void drop_further(Cell& cell);

  template <typename F>
  void for_each_clock(F&& f) const {
    for (const Cell& cell : pieces_.all()) f(cell.write_clock);
    for (const FurtherAccesses& list : further_) {
      for (const FurtherAccess& access : list.all()) f(access.clock);
    }
  }

 private:
  friend PieceMap<Cell, AccessHistory>;
  void copied(Cell& cell);
  void dropped(Cell& cell) { drop_further(cell); }

  PieceMap<Cell, AccessHistory> pieces_;
  std::vector<FurtherAccesses> further_;
  std::vector<std::uint32_t> free_further_;
};

}  // namespace heddle::race
