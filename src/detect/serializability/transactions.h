// Conflict serialisability of transactions, decided event by event.
//
// A thread's events fall into transactions: what lies between an outermost begin and its end, and
// every event outside as a transaction of its own. Draw an edge from transaction A to transaction B
// when an event of A is ordered before an event of B: by program order, by a conflict on a
// variable, by a lock, by fork or join. The run is serialisable iff the graph has no cycle. An
// event closes a cycle when it is ordered after an event of another thread whose transaction
// its own transaction reaches already.
//
// The textbook engine (Velodrome, Flanagan, Freund and Yi, PLDI 2008) keeps that graph, looks for a
// path at every new edge and collects finished nodes that have no incoming edge any more. One long
// transaction then keeps thousands of finished ones alive, and every search walks through them. We
// keep the same knowledge without the nodes, from three observations:
//
//   1. Edges lead only into transactions that are running, so a cycle can only close at one, and
//      of a node's ancestors only the running ones matter. A node without running ancestors can
//      never be on a cycle: that is what collection would have removed.
//   2. Program order makes knowledge of ancestors grow along a thread: if transaction k of thread u
//      has ancestor T, so have k+1, k+2, …  One number says it all: first(u, t) = the first
//      transaction of u that the running transaction of thread t reaches.
//   3. When running transaction T gains an ancestor H, so do all descendants of T: for every u with
//      first(u, T), first(u, H) = min(first(u, H), first(u, T)).
//
// So the state is a matrix over threads, whatever the length of the run and of its transactions.
// An edge that brings nothing new costs a few bit operations; each pair of threads learns of each
// other at most once per transaction. `first` holds times (of the outermost begin, or of the event
// itself), so an access needs no node: access e of u belongs to a transaction that t reaches iff
// first(u, t) ≤ e.
//
// After a cycle has closed, the same rules go on to hold on the cyclic graph; nothing is dropped,
// so all violations are found, not only the first.
//
// The witness. Each time a transaction learns of a running ancestor H through an edge, the edge is
// put into H's group; when T gains H, the edges that T's descendants owe to T matter to H as well,
// so T's group becomes part of H's. The path from T back to itself is searched in T's group:
// at most threads² edges. Groups that no running transaction refers to are swept.
#pragma once

#include "order/clocks.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

namespace heddle::serializability {

// One event, as much as an edge of a witness tells about it.
struct Touch {
  Time time{};  // 0 = none
  Slot slot{};
  SiteId site{};
  StackId stack{};
  LockSetId locks{};
  std::uint32_t since_begin{};  // how long its transaction had been running
  EventKind kind{};

  Time begun() const { return time - since_begin; }  // identifies its transaction
};

enum class EdgeKind : std::uint8_t { kVariable, kLock, kFork, kJoin };

// `source` is ordered directly before `target`. The target of a fork is the child's beginning.
struct Edge {
  Touch source;
  Touch target;
  Address object{};  // the variable or lock
  EdgeKind kind{};
};

class Transactions {
 public:
  // Groups are swept from this many abandoned ones on.
  explicit Transactions(std::size_t sweep_at = 64) : least_sweep_(sweep_at), sweep_at_(sweep_at) {}

  // A place in the matrix. A slot may be given to a new thread (`since` = its fork) when its former
  // thread has ended and been joined by the forking thread: the two count as one.
  Slot add_slot();
  void pass_on(Slot slot, Time since) { slots_[slot].since = since; }

  void begin(Slot slot, Time time);
  void end(Slot slot);
  bool running(Slot slot) const { return slots_[slot].running; }
  Time begun(Slot slot) const { return slots_[slot].begun; }

  // An order from `source` to what `target` does now would change nothing and close no cycle: the
  // answer most of the time.
  bool brings_nothing(const Touch& source, Slot target) const {
    if (source.slot == target) return source.time >= slots_[target].since;
    const std::uint64_t* const from = &ancestors_[source.slot * words_];
    const std::uint64_t* const to = &ancestors_[target * words_];
    if (from[target / 64] >> (target % 64) & 1) return false;
    for (std::size_t w = 0; w < words_; ++w) {
      if (from[w] & ~to[w]) return false;
    }
    return true;
  }

  // The event `target`, which happens now, is ordered after `source`. Does that close a cycle?
  bool order(const Touch& source, const Touch& target, EdgeKind kind, Address object) {
    const bool closes = reaches(target.slot, source);
    const std::uint64_t* const from = &ancestors_[source.slot * words_];
    const std::uint64_t* const to = &ancestors_[target.slot * words_];
    for (std::size_t w = 0; w < words_; ++w) {
      if (from[w] & ~to[w]) {
        learn(source, target, kind, object);
        break;
      }
    }
    return closes;
  }

  // Right after order() said yes: the edges of a cycle, from the running transaction of
  // target.slot back to it; the last is the one that closed it. Each leads to a transaction of the
  // thread of the next one's source: the same transaction, or an earlier one of that thread.
  std::vector<Edge> witness(const Touch& source, const Touch& target, EdgeKind kind,
                            Address object) const;

  std::size_t groups_in_use() const { return groups_.size() - free_groups_.size(); }

 private:
  using GroupId = std::uint32_t;  // 0 = none

  struct SlotState {
    bool running = false;
    Time begun{};     // of the running transaction
    Time since{};     // its thread's first possible event
    GroupId group{};  // of the running transaction
  };
  struct Group {
    std::vector<Edge> edges;
    std::vector<GroupId> parts;
    bool shared = false;  // part of another
  };

  bool reaches(Slot from, const Touch& touch) const {
    const Slot u = touch.slot;
    if (!slots_[from].running || !has(u, from) || first(u, from) > touch.time) return false;
    return u != from || touch.time < slots_[from].since;
  }
  bool has(Slot descendant, Slot ancestor) const {
    return ancestors_[descendant * words_ + ancestor / 64] >> (ancestor % 64) & 1;
  }
  Time first(Slot descendant, Slot ancestor) const {
    return first_[descendant * words_ * 64 + ancestor];
  }
  void set_first(Slot descendant, Slot ancestor, Time time);
  void learn(const Touch& source, const Touch& target, EdgeKind kind, Address object);
  void learn_one(Slot slot, Slot ancestor, const Edge& edge);
  GroupId group_of(Slot slot);
  void sweep_groups();
  void widen();

  std::vector<SlotState> slots_;
  std::size_t words_ = 1;                   // of 64 slots each
  std::vector<std::uint64_t> ancestors_;    // [slot][ancestor]: bits
  std::vector<std::uint64_t> descendants_;  // [slot][descendant]: bits, the transpose
  std::vector<Time> first_;                 // [slot][ancestor], where the bit is set
  std::vector<Group> groups_{1};
  std::vector<GroupId> free_groups_;
  std::size_t abandoned_ = 0;  // shared groups of finished transactions
  std::size_t least_sweep_;
  std::size_t sweep_at_;
};

}  // namespace heddle::serializability
