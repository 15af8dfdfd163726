// The detector `lockset`: Eraser (Savage et al., TOCS 1997), the baseline that the papers compare
// with (correlated-2014, section 3.2 and figure 5).
//
// Every byte v has a set C(v) of candidate locks, those held at all accesses so far. Refinement
// starts when a second thread comes, so that initialisation needs no lock, and an empty set is
// reported only once somebody writes to what is shared:
//
//     untouched → exclusive (one thread) → shared (others read) → shared-modified (written)
//
// A read lock protects reads, a write lock both: a write refines by the locks held exclusively.
// One report per byte. What Eraser does not know (fork and join, conditions, hand-over of
// ownership) makes it report orderly programs; that is the method, not an accident.
//
// Where we differ: exact bytes instead of words; atomic accesses protect themselves and are left
// out; freed memory starts afresh.
#pragma once

#include "detect/detector.h"
#include "detect/piece_map.h"
#include "detect/race/access_history.h"
#include "detect/race/annotations.h"
#include "detect/race/pair_findings.h"
#include "detect/witness.h"
#include "order/lock_sets.h"

namespace heddle::race {

class LocksetEngine {
 public:
  struct Seen {
    Access access;
    ThreadId thread{};
    EventKind kind{};
  };
  struct Report {
    Address address{};
    std::uint32_t size{};
    Seen earlier;  // the latest access of another thread
  };

  LocksetEngine(const CallStacks& stacks, const LocksHeld& held)
      : stacks_(stacks), held_(held), sets_(held), pieces_(*this) {}

  // f(const Report&) for every run of bytes that this event leaves without a lock.
  template <typename F>
  void on(const Event& event, EventOrdinal ordinal, F&& f) {
    if (event.kind == EventKind::kAlloc) {
      pieces_.clear(event.address, event.value);
      blocks_[event.address] = event.value;
    } else if (event.kind == EventKind::kFree) {
      on_free(event);
    } else if (is_access(event.kind) && event.order == MemoryOrder::kPlain) {
      const Seen now = seen(event, ordinal);
      pieces_.cover(event.address, event.size, [&](CellId id, Address address) {
        Cell& cell = pieces_[id];
        if (refine(cell, now)) f(Report{address, cell.last - cell.first + 1u, cell.other});
      });
    }
  }

 private:
  enum class State : std::uint8_t { kUntouched, kExclusive, kShared, kSharedModified };

  struct Cell {
    Seen latest;
    Seen other;  // the latest of a thread other than that of `latest`
    CandidateSet candidates = kAllLocks;
    State state{};
    bool reported{};
    std::uint8_t first{};
    std::uint8_t last{};
  };

  friend PieceMap<Cell, LocksetEngine>;
  void copied(Cell&) {}
  void dropped(Cell&) {}

  Seen seen(const Event& event, EventOrdinal ordinal) const;
  bool refine(Cell& cell, const Seen& now);
  void on_free(const Event& event);

  const CallStacks& stacks_;
  const LocksHeld& held_;
  LockSets sets_;
  PieceMap<Cell, LocksetEngine> pieces_;
  absl::flat_hash_map<Address, std::uint64_t> blocks_;
};

class LocksetDetector final : public Detector {
 public:
  explicit LocksetDetector(const Catalog& catalog)
      : narrator_(catalog),
        annotations_(catalog),
        findings_(narrator_, sync_),
        engine_(narrator_.stacks(), narrator_.locks_held()) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override { return findings_.take(); }

 private:
  void report(const Event& event, EventOrdinal ordinal, const LocksetEngine::Report& report);

  Narrator narrator_;
  Annotations annotations_;
  RecentSync sync_;
  PairFindings findings_;
  LocksetEngine engine_;
};

}  // namespace heddle::race
