// Data races by happens-before: two accesses to the same byte, of different threads, at least one a
// write and at least one not atomic, neither ordered before the other.
//
// FastTrack (Flanagan and Freund, PLDI 2009) showed that one remembered access per variable decides
// most checks: while accesses are ordered, the latest stands for all. We keep, per byte, the
// accesses that no later one stands for (access_history.h). A later access stands for an earlier
// one that happened before it if everything that conflicts with the earlier also conflicts with the
// later:
//
//     conflicts with        plain read   plain write   atomic read   atomic write
//     plain read                             x                            x
//     plain write               x            x              x             x
//     atomic read                            x
//     atomic write              x            x
//
// so a plain write stands for everything, a plain read for reads of both kinds, an atomic write for
// atomic accesses, an atomic read for atomic reads. Whether an event races with anything before it
// is thereby decided exactly, for any number of races on the byte before.
//
// After the first race, happens-before says too much. What a thread does after a racing read can
// depend on the value it read, so in no run need the two sides of a later "race" meet: one race
// poisons the next. Schedulable happens-before (Mathur, Kini and Viswanathan, "What happens-after
// the first race?", OOPSLA 2018) adds an edge from the last write to a read of its value; accesses
// unordered by that relation can really be scheduled next to each other. We report
//
//   - the first race of every byte by happens-before, exactly (schedulable = false marks one that
//     may be a mere consequence of an earlier race), and
//   - further races of that byte when they are schedulable.
//
// The two relations are the same until the first racing read; only then a second HappensBefore is
// split off. The added edges need what the writer knew at the write, which every write remembers as
// one number (order/clocks.h). An atomic read of an atomic write adds no edge: that pair is no
// race, and what follows a relaxed flag is a real race in the very run observed.
//
// A Free counts as a write to every byte of the block; after it, and after Alloc, memory starts
// afresh. For an atomic access, what it acquires counts as known at the access.
#pragma once

#include "detect/race/access_history.h"
#include "order/happens_before.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/event.h"

#include <optional>

namespace heddle::race {

struct RacingAccess {
  Access access;
  Operation operation;
};

struct Race {
  Address address{};  // the bytes concerned
  std::uint32_t size{};
  RacingAccess earlier;
  RacingAccess later;
  bool first{};        // no race on these bytes was reported before
  bool schedulable{};  // not merely a consequence of an earlier race
};

class RaceSink {
 public:
  virtual void on_race(const Race& race) = 0;

 protected:
  ~RaceSink() = default;
};

class RaceEngine {
 public:
  // `stacks` and `locks` follow the same trace, one step ahead. Clocks are collected from
  // `collect_from` on.
  RaceEngine(RaceSink& sink, const CallStacks& stacks, const LocksHeld& locks,
             std::size_t collect_from = 4096)
      : sink_(sink), stacks_(stacks), locks_(locks), happens_before_(collect_from) {}

  void on(const Event& event, EventOrdinal ordinal) {
    if (is_access(event.kind)) {
      if (!is_simple(event, ordinal)) on_access(event, ordinal, true);
    } else if (event.kind < EventKind::kEnter) {
      on_other(event, ordinal);
    }
  }

  // For accesses to come, in two steps.
  void prefetch_word(const Event& event) const { history_.pieces().prefetch_word(event.address); }
  void prefetch_cell(const Event& event) const { history_.pieces().prefetch_cell(event.address); }

  // An event that orders nothing, whatever it is: an atomic access remains one.
  void on_without_order(const Event& event, EventOrdinal ordinal) {
    if (is_access(event.kind)) on_access(event, ordinal, false);
  }

  // Which thread had `slot` at `time`.
  ThreadId thread(Slot slot, Time time) const { return happens_before_.owner(slot, time); }

  std::size_t cells() const { return history_.cells(); }
  std::size_t clocks() const { return happens_before_.clocks_in_use(); }

 private:
  struct Now {  // the access at hand
    Access access;
    Operation operation;
    AccessClass access_class{};
    ThreadId thread{};
  };

  bool is_simple(const Event& event, EventOrdinal ordinal);
  void on_access(const Event& event, EventOrdinal ordinal, bool may_order);
  void on_other(const Event& event, EventOrdinal ordinal);
  void on_free(const Event& event, EventOrdinal ordinal);

  void check(const Now& now, CellId id, Address address);
  void remember(const Now& now, CellId id);
  void report(const Now& now, const Cell& cell, Address address, const Access& earlier,
              Operation operation);
  void note_last_write(const Now& now, const Cell& cell);
  void learn_last_writes(const Now& now);
  void collect_if_crowded();

  HappensBefore& schedulable() { return schedulable_ ? *schedulable_ : happens_before_; }

  RaceSink& sink_;
  const CallStacks& stacks_;
  const LocksHeld& locks_;
  AccessHistory history_;
  HappensBefore happens_before_;
  std::optional<HappensBefore> schedulable_;  // once a read has raced
  absl::flat_hash_map<Address, std::uint64_t> blocks_;
  std::vector<Moment> last_writes_;  // racing ones that the access at hand reads
  std::vector<CellId> touched_;
};

}  // namespace heddle::race
