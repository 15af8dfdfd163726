// From events to orders between transactions: who touched what last.
//
// For every byte and every lock we keep the latest write and, per thread, the latest read since.
// An access is ordered directly after the latest write and, if it writes, after those reads; all
// other conflicts follow from these. An exclusive acquisition or release counts as a write of the
// lock, a shared one as a read; a failed acquisition is no event. Fork is ordered before everything
// in the child, the child's last event before the join. Other synchronisation orders nothing here:
// serialisability asks about conflicts, and a barrier inside transactions would make every run a
// cycle.
//
// Transactions nest; only the outermost count. One that never ends is running to the last event.
#pragma once

#include "detect/list_pool.h"
#include "detect/piece_map.h"
#include "detect/serializability/transactions.h"

#include <algorithm>
#include <span>

#include <absl/container/flat_hash_map.h>

namespace heddle::serializability {

// `cycle`: as Transactions::witness. Its last edge's target is the event that closed it.
struct Violation {
  std::span<const Edge> cycle;
};

class ViolationSink {
 public:
  // Asked first, with the edge that closes the cycle; the search for the rest of the cycle is made
  // only if the answer is yes.
  virtual bool wants(const Edge& closing) = 0;
  virtual void on_violation(const Violation& violation) = 0;

 protected:
  ~ViolationSink() = default;
};

class Engine {
 public:
  // `stacks` and `locks` follow the same trace, one step ahead.
  Engine(ViolationSink& sink, const CallStacks& stacks, const LocksHeld& locks,
         std::size_t sweep_at = 64)
      : sink_(sink), stacks_(stacks), locks_(locks), transactions_(sweep_at), variables_(*this) {}

  void on(const Event& event, EventOrdinal ordinal);

  ThreadId thread(const Touch& touch) const;  // whose event it was
  std::uint64_t violations() const { return violations_; }
  std::size_t cells() const { return variables_.size(); }
  std::size_t groups() const { return transactions_.groups_in_use(); }

 private:
  struct History {
    Touch write;
    Touch read;               // the latest
    std::uint32_t further{};  // 0 = none, else the list of other threads' reads since the write
    std::uint8_t first{};
    std::uint8_t last{};
  };
  struct Thread {
    Slot slot{kNoSlot};
    std::uint32_t depth{};  // of transactions
    StackId stack{};        // where it is now
    LockSetId locks{};      // and what it holds
    bool ended = false;
    bool joined = false;
    std::vector<Slot> spare;  // slots of ended threads that this one joined
  };
  struct Last {  // of a slot's events
    Time time{};
    SiteId site{};
    std::uint32_t since_begin{};
    EventKind kind{};
  };
  struct Owner {
    ThreadId thread{};
    Time since{};
  };

  friend PieceMap<History, Engine>;
  void copied(History& history);
  void dropped(History& history);

  Slot slot(ThreadId thread) {
    if (thread >= threads_.size() || threads_[thread].slot == kNoSlot) start(thread);
    return threads_[thread].slot;
  }
  void start(ThreadId thread);
  Touch touch(const Event& event, EventOrdinal ordinal) {
    Touch now;
    now.time = time_of(ordinal);
    now.slot = slot(event.thread);
    const Thread& me = threads_[event.thread];
    now.site = event.site;
    now.stack = me.stack;
    now.locks = me.locks;
    now.kind = event.kind;
    if (me.depth != 0) {
      const Time since = now.time - transactions_.begun(now.slot);
      now.since_begin = static_cast<std::uint32_t>(std::min<Time>(since, 0xffffffffu));
    }
    Last& last = last_[now.slot];
    last.time = now.time;
    last.site = event.site;
    last.kind = event.kind;
    last.since_begin = now.since_begin;
    return now;
  }

  void on_access(const Event& event, EventOrdinal ordinal);
  void on_lock(const Event& event, EventOrdinal ordinal);
  void on_fork(const Event& event, EventOrdinal ordinal);
  void on_join(const Event& event, EventOrdinal ordinal);
  void on_unit(const Event& event, EventOrdinal ordinal);

  void read(History& history, const Touch& now, EdgeKind kind, Address object);
  void write(History& history, const Touch& now, EdgeKind kind, Address object);
  void order(const Touch& source, const Touch& target, EdgeKind kind, Address object) {
    if (!transactions_.brings_nothing(source, target.slot)) {
      order_slowly(source, target, kind, object);
    }
  }
  void order_slowly(const Touch& source, const Touch& target, EdgeKind kind, Address object);

  ViolationSink& sink_;
  const CallStacks& stacks_;
  const LocksHeld& locks_;
  Transactions transactions_;
  PieceMap<History, Engine> variables_;
  absl::flat_hash_map<Address, History> lock_histories_;
  absl::flat_hash_map<Address, std::uint64_t> blocks_;
  ListPool<Touch> further_;
  std::vector<Thread> threads_;
  std::vector<Last> last_;                  // by slot
  std::vector<std::vector<Owner>> owners_;  // by slot
  Time last_violation_ = 0;
  std::uint64_t violations_ = 0;
};

}  // namespace heddle::serializability
