// Happens-before over the events of a trace: the relation of the C++20 memory model where atomics
// are concerned, and of POSIX for everything else.
//
// e1 happens before e2 iff a chain of these leads from e1 to e2:
//
//   program order    within a thread
//   locks            release → every later acquisition of the lock, unless both are shared
//   threads          fork → first event of the child; last event of the child → join
//   conditions       signal, broadcast → wake-up, for signals since the waiter let go of its mutex
//   semaphores       post → every later successful wait
//   barriers         every arrival of a round → every departure of that round
//   once             end of the initialiser → every later pass, and the next attempt
//   announced order  OrderRelease → every later OrderAcquire of the object
//   atomics          a release operation → an acquire operation that reads what it wrote, or what
//                    a read-modify-write in its release sequence wrote ([atomics.order], C++20: a
//                    later plain store of the same thread ends the sequence)
//   fences           a release fence before an atomic write, and an acquire fence after an
//                    atomic read, stand in for release and acquire order of those accesses
//
// In the one total order of a trace an atomic read reads the latest atomic write before it, and
// the modification order is the order of the trace. seq_cst adds a total order over seq_cst
// operations to acquire and release; that order does not create happens-before
// ([intro.races]), so it creates none here. consume is treated as acquire, as compilers do. A
// plain write to an atomic object does not end a release sequence here: whoever reads its value is
// either ordered after the write, and then knows what the sequence would tell, or races with it.
//
// Clocks and slots. Every thread has a slot in the clocks (order/clocks.h). A slot is passed on to
// a new thread when its former owner has ended and the forking thread knows that end: then whatever
// knows an event of the new owner knows all of the former one, so the two count as one chain. The
// width of clocks is thereby the number of threads that were concurrent, not of all that ever ran.
//
// Memory: sync objects inside a freed block are forgotten with it.
#pragma once

#include "order/clocks.h"
#include "trace/event.h"

#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle {

class HappensBefore {
 public:
  // Collection is asked for from `smallest` clocks on.
  explicit HappensBefore(std::size_t smallest = 4096) : clocks_(smallest) {}

  // Takes note of everything but plain accesses, which order nothing. For an atomic access, call
  // this before asking ordered(): what the access acquires is known at the access.
  void on(const Event& event, EventOrdinal ordinal);

  // The two halves of on() for an atomic access, for whoever learns something in between. A write
  // that does not release ends a release sequence and heads none.
  void on_atomic_read(const Event& event);
  void on_atomic_write(const Event& event, EventOrdinal ordinal, bool may_release = true);

  // Did the event of `slot` at `time` happen before whatever `thread` does next?
  bool ordered(Slot slot, Time time, ThreadId thread) const {
    const Thread& me = threads_[thread];
    return slot == me.slot || clocks_.known(me.clock, slot) >= time;
  }

  // The same question for many events of the past at one moment.
  struct View {
    Slot slot;
    const Time* known;
    bool ordered(Slot other, Time time) const { return other == slot || known[other] >= time; }
  };
  View view(ThreadId thread) const {
    return {threads_[thread].slot, clocks_.row(threads_[thread].clock)};
  }

  // The thread's place in clocks; gives it one if it is new. Call it (or on()) before the other
  // questions about a thread.
  Slot slot(ThreadId thread) {
    if (thread >= threads_.size() || threads_[thread].slot == kNoSlot) start(thread);
    return threads_[thread].slot;
  }

  // For a second relation over the same trace that must use the same slots as the first.
  void adopt_slot(ThreadId thread, Slot slot);

  // Which thread had `slot` at `time`.
  ThreadId owner(Slot slot, Time time) const;

  // What the thread knows now, to be remembered.
  ClockId clock(ThreadId thread) const { return threads_[thread].clock; }

  // The latest event of `slot` that a remembered clock knows.
  Time known(ClockId clock, Slot slot) const { return clocks_.known(clock, slot); }

  // An order from elsewhere: `moment` happened before whatever `thread` does next.
  void learn(ThreadId thread, const Moment& moment);

  // Clocks that nobody remembers are collected. `roots` is how many the caller remembers; marking
  // them is the caller's part, between begin and end.
  bool wants_collection(std::size_t roots) const { return clocks_.crowded(roots + objects_); }
  void begin_collection();
  void keep(ClockId clock) { clocks_.mark(clock); }
  void end_collection() { clocks_.sweep(); }

  std::size_t clocks_in_use() const { return clocks_.in_use(); }
  std::size_t slots() const { return slots_.size(); }

 private:
  struct Thread {
    Slot slot{kNoSlot};
    ClockId clock{};
    Time last_release{};     // its latest Release event, for conditions
    Moment release_fence;    // at its latest release fence
    Moment pending_acquire;  // what relaxed reads saw, until an acquire fence
    Time end{};              // its ThreadEnd
    bool started = false;    // by a Fork, or by its own first event
  };
  struct SlotState {
    struct Owner {
      ThreadId thread{};
      Time since{};
    };
    Time ended{};  // when its owner ended, 0 = has not
    std::vector<Owner> owners;
  };
  struct Lock {
    Moment exclusive;
    Moment shared;
  };
  struct Atomic {
    Moment released;  // what an acquire read of the current value learns
    std::uint32_t size{};
    bool mixed{};  // accessed in another size, or overlapping another atomic
  };
  struct Round {
    Moment arrived;
    std::uint32_t inside{};  // arrived and not yet departed
    bool leaving{};          // somebody departed: the next arrival belongs to the next round
  };
  struct Barrier {
    std::vector<Round> rounds;  // oldest first, the last one is open
    std::uint64_t first_round{};
    absl::flat_hash_map<ThreadId, std::uint64_t> round_of;
  };

  void start(ThreadId thread);
  void inherit(ThreadId thread, Slot slot, Time since);
  void fork(ThreadId parent, ThreadId child, Time time);
  void join(ThreadId thread, ThreadId child, Time time);
  void acquire(ThreadId thread, const Moment& moment);
  void release(ThreadId thread, Moment& into, Time time);
  Moment now(ThreadId thread, Time time) const {
    return {threads_[thread].clock, threads_[thread].slot, time};
  }

  void on_fence(const Event& event, Time time);
  Atomic& atomic_at(Address address, std::uint32_t size);
  void read_atomic(ThreadId thread, const Atomic& atomic, MemoryOrder order);
  void on_lock(const Event& event, Time time);
  void on_wait(const Event& event);
  void on_signal(const Event& event, Time time);
  void on_arrive(const Event& event, Time time);
  void on_leave(const Event& event);
  void on_free(Address address, std::uint64_t size);
  void register_object(Address address);

  template <typename Map>
  auto& object(Map& map, Address address) {
    const auto [at, is_new] = map.try_emplace(address);
    if (is_new) register_object(address);
    return at->second;
  }

  Clocks clocks_;
  std::vector<Thread> threads_;
  std::vector<SlotState> slots_;
  std::vector<Slot> ended_slots_;

  absl::flat_hash_map<Address, Lock> locks_;
  absl::flat_hash_map<Address, Atomic> atomics_;
  absl::flat_hash_map<Address, Moment> channels_;                 // semaphores, once flags
  absl::flat_hash_map<Address, Moment> announced_;                // OrderRelease
  absl::flat_hash_map<Address, std::vector<Moment>> conditions_;  // latest signal of each slot
  absl::flat_hash_map<Address, Barrier> barriers_;
  absl::flat_hash_map<Address, std::uint64_t> blocks_;  // size of live blocks, for Free without one
  absl::flat_hash_map<Address, std::vector<Address>> objects_on_page_;
  std::size_t objects_ = 0;
};

}  // namespace heddle
