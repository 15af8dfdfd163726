// The first pass of the frontier race detector (svd-2005, section 6.2; Choi and Min): the tightest
// conflicting pairs, without knowing what synchronises.
//
// All conflicting accesses are taken to be ordered as they happened. A pair of conflicting accesses
// of two threads is a frontier race iff that order does not follow from program order and other
// conflicts: there is no third event between the two. In a run with locks these are the hand-overs
// of the locks, and the data races.
//
// Synchronisation operations are accesses to their objects here: an operation that changes the
// object (an exclusive acquisition or release, a post, a signal) is an update, one that only looks
// (shared acquisition, passing a once flag) a read. Fork and join are order that no marking can
// take away. Memory that is freed starts afresh.
//
// Per byte and object: the latest write and the latest read of each thread since, each with what
// its thread knew. The clocks are those of HappensBefore, fed with conflicts instead of
// synchronisation.
#pragma once

#include "detect/list_pool.h"
#include "detect/piece_map.h"
#include "detect/race/access_history.h"
#include "order/happens_before.h"

#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::race {

// How the first pass sees an event: as an access to memory, or to a synchronisation object.
enum class Effect : std::uint8_t { kNone, kLooks, kChanges };
Effect effect_of(const Event& event);
inline bool is_sync_object(const Event& event) {
  return !is_access(event.kind);
}

class FrontierEngine {
 public:
  struct Seen {
    Access access;
    ClockId clock{};
    EventKind kind{};
    bool atomic{};
  };
  struct Pair {
    Address address{};
    Seen earlier;
    Seen later;
  };

  FrontierEngine(const CallStacks& stacks, const LocksHeld& locks)
      : stacks_(stacks), locks_(locks), pieces_(*this) {}

  // The frontier races that this event completes; valid until the next call.
  const std::vector<Pair>& on(const Event& event, EventOrdinal ordinal);

  ThreadId thread(const Access& access) const { return order_.owner(access.slot, access.time); }

 private:
  struct Cell {
    Seen write;
    std::uint32_t reads{};  // 0 = none, else a list, one per slot
    std::uint8_t first{};
    std::uint8_t last{};
  };

  friend PieceMap<Cell, FrontierEngine>;
  void copied(Cell& cell);
  void dropped(Cell& cell);

  void gather(const Cell& cell, Effect effect, Address address, ThreadId thread);
  void leave_behind(Cell& cell, Effect effect, const Seen& now);
  void collect_if_crowded();

  const CallStacks& stacks_;
  const LocksHeld& locks_;
  HappensBefore order_;
  PieceMap<Cell, FrontierEngine> pieces_;
  absl::flat_hash_map<Address, Cell> objects_;
  absl::flat_hash_map<Address, std::uint64_t> blocks_;
  ListPool<Seen> reads_;
  std::vector<Pair> candidates_;  // unordered so far; `later` is filled in at the end
  std::vector<CellId> touched_;
};

}  // namespace heddle::race
