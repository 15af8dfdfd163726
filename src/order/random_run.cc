#include "order/random_run.h"

#include <algorithm>
#include <random>
#include <string>

#include <fmt/format.h>

namespace heddle::testing {
namespace {

constexpr Address kCondition = 0x4000;
constexpr Address kSemaphore = 0x4040;
constexpr Address kBarrier = 0x4080;
constexpr Address kOnce = 0x40c0;
constexpr Address kObject = 0x4100;

class Generator {
 public:
  Generator(std::uint64_t seed, const RunShape& shape) : random_(seed), shape_(shape) {}

  std::vector<Event> run() {
    threads_.resize(shape_.fork_join ? 1 : shape_.threads);
    while (events_.size() < shape_.events) step();
    return std::move(events_);
  }

 private:
  struct ThreadState {
    bool ended = false;
    bool joined = false;
    std::vector<std::pair<Address, LockMode>> locks;
    int units = 0;
    bool waiting = false;     // released its mutex, will wake up
    bool at_barrier = false;  // arrived
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  Event& add(EventKind kind, ThreadId thread, Address address = 0) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.site = static_cast<SiteId>(events_.size() + 1);
    events_.push_back(event);
    return events_.back();
  }

  void step() {
    const auto thread = static_cast<ThreadId>(below(threads_.size()));
    ThreadState& me = threads_[thread];
    if (me.ended) return;
    if (me.waiting) {
      me.waiting = false;
      add(EventKind::kWait, thread, kCondition).outcome =
          below(4) == 0 ? OpOutcome::kTimedOut : OpOutcome::kOk;
      return;
    }
    if (me.at_barrier) {
      me.at_barrier = false;
      add(EventKind::kBarrierLeave, thread, kBarrier);
      return;
    }
    if (below(100) < shape_.plain) return access(thread);
    switch (below(6)) {
      case 0:
      case 1:
        return shape_.locks ? lock(thread) : void();
      case 2:
        return shape_.fork_join ? fork_join(thread) : void();
      case 3:
        return shape_.atomics ? atomic(thread) : void();
      case 4:
        return shape_.other_sync ? other(thread) : void();
      default:
        return shape_.units ? unit(thread) : void();
    }
  }

  void access(ThreadId thread) {
    static constexpr EventKind kKinds[] = {EventKind::kRead, EventKind::kRead, EventKind::kWrite,
                                           EventKind::kWrite, EventKind::kRmw};
    const EventKind kind = kKinds[below(shape_.overlapping ? 4 : 5)];
    if (shape_.overlapping) {
      const auto size = static_cast<std::uint32_t>(1u << below(4));
      const Address offset = below(17 - size);
      add(kind, thread, kVariables + offset).size = size & 0x7fffffffu;
      return;
    }
    // Now and then a plain access to an atomic object.
    const bool to_atomic = shape_.atomics && below(10) == 0;
    const Address base = to_atomic ? kAtomics : kVariables;
    add(kind, thread, base + 8 * below(to_atomic ? 2 : shape_.variables)).size = 4;
  }

  void lock(ThreadId thread) {
    ThreadState& me = threads_[thread];
    if (!me.locks.empty() && below(2) == 0) {
      const std::size_t which = below(me.locks.size());
      add(EventKind::kRelease, thread, me.locks[which].first).mode = me.locks[which].second;
      me.locks.erase(me.locks.begin() + static_cast<std::ptrdiff_t>(which));
      return;
    }
    const Address address = kLocks + 64 * below(2);
    const LockMode mode = below(3) == 0 ? LockMode::kShared : LockMode::kExclusive;
    for (const ThreadState& other : threads_) {
      for (const auto& [held, held_mode] : other.locks) {
        if (held != address) continue;
        if (&other == &me || mode == LockMode::kExclusive || held_mode == LockMode::kExclusive) {
          Event& failed = add(EventKind::kAcquire, thread, address);
          failed.mode = mode;
          failed.outcome = OpOutcome::kFailed;
          return;
        }
      }
    }
    add(EventKind::kAcquire, thread, address).mode = mode;
    me.locks.emplace_back(address, mode);
  }

  void fork_join(ThreadId thread) {
    ThreadState& me = threads_[thread];
    const std::uint64_t choice = below(3);
    if (choice == 0 && thread != 0 && me.locks.empty()) {
      add(EventKind::kThreadEnd, thread);
      me.ended = true;
      return;
    }
    if (choice == 1) {
      for (std::size_t other = 0; other < threads_.size(); ++other) {
        if (!threads_[other].ended || threads_[other].joined || other == thread) continue;
        add(EventKind::kJoin, thread).value = other;
        threads_[other].joined = true;
        return;
      }
    }
    if (threads_.size() < shape_.threads) {
      add(EventKind::kFork, thread).value = threads_.size();
      threads_.emplace_back();
    }
  }

  void atomic(ThreadId thread) {
    static constexpr MemoryOrder kReadOrders[] = {MemoryOrder::kRelaxed, MemoryOrder::kAcquire,
                                                  MemoryOrder::kConsume, MemoryOrder::kSeqCst};
    static constexpr MemoryOrder kWriteOrders[] = {MemoryOrder::kRelaxed, MemoryOrder::kRelease,
                                                   MemoryOrder::kSeqCst};
    static constexpr MemoryOrder kAllOrders[] = {MemoryOrder::kRelaxed, MemoryOrder::kAcquire,
                                                 MemoryOrder::kRelease, MemoryOrder::kAcqRel,
                                                 MemoryOrder::kSeqCst};
    const Address address = kAtomics + 8 * below(2);
    switch (below(4)) {
      case 0: {
        Event& e = add(EventKind::kRead, thread, address);
        e.order = kReadOrders[below(4)];
        e.size = 4;
        return;
      }
      case 1: {
        Event& e = add(EventKind::kWrite, thread, address);
        e.order = kWriteOrders[below(3)];
        e.size = 4;
        return;
      }
      case 2: {
        Event& e = add(EventKind::kRmw, thread, address);
        e.order = kAllOrders[below(5)];
        e.size = 4;
        return;
      }
      default:
        add(EventKind::kFence, thread).order = kAllOrders[1 + below(4)];
    }
  }

  void other(ThreadId thread) {
    ThreadState& me = threads_[thread];
    switch (below(9)) {
      case 0:
        add(EventKind::kRelease, thread, kLocks + Address{64} * 9);  // the condition's mutex
        me.waiting = true;
        return;
      case 1:
        add(below(2) == 0 ? EventKind::kSignal : EventKind::kBroadcast, thread, kCondition);
        return;
      case 2:
        add(EventKind::kSemPost, thread, kSemaphore);
        return;
      case 3:
        add(EventKind::kSemWait, thread, kSemaphore).outcome =
            below(3) == 0 ? OpOutcome::kFailed : OpOutcome::kOk;
        return;
      case 4:
        add(EventKind::kBarrierArrive, thread, kBarrier);
        me.at_barrier = true;
        return;
      case 5:
        add(EventKind::kOnceEnd, thread, kOnce);
        return;
      case 6:
        add(below(2) == 0 ? EventKind::kOncePass : EventKind::kOnceBegin, thread, kOnce);
        return;
      case 7:
        add(EventKind::kOrderRelease, thread, kObject);
        return;
      default:
        add(EventKind::kOrderAcquire, thread, kObject);
    }
  }

  void unit(ThreadId thread) {
    ThreadState& me = threads_[thread];
    if (me.units > 0 && below(2) == 0) {
      add(EventKind::kUnitEnd, thread);
      --me.units;
    } else {
      add(EventKind::kUnitBegin, thread);
      ++me.units;
    }
  }

  std::mt19937_64 random_;
  RunShape shape_;
  std::vector<ThreadState> threads_;
  std::vector<Event> events_;
};

bool is_atomic_write(const Event& event) {
  return is_write(event.kind) && event.order != MemoryOrder::kPlain;
}

bool is_release(MemoryOrder order) {
  return order == MemoryOrder::kRelease || order == MemoryOrder::kAcqRel ||
         order == MemoryOrder::kSeqCst;
}

bool is_acquire(MemoryOrder order) {
  return order == MemoryOrder::kAcquire || order == MemoryOrder::kConsume ||
         order == MemoryOrder::kAcqRel || order == MemoryOrder::kSeqCst;
}

// The atomic writes whose release sequence the atomic read at `read` reads from, newest first: the
// write it reads, and while that one is a read-modify-write, the one before it.
std::vector<std::size_t> sequence_heads(const std::vector<Event>& events, std::size_t read) {
  std::vector<std::size_t> out;
  for (std::size_t w = read; w-- > 0;) {
    if (!is_atomic_write(events[w]) || events[w].address != events[read].address) continue;
    out.push_back(w);
    if (events[w].kind == EventKind::kWrite) break;
  }
  return out;
}

// [atomics.order] and [atomics.fences]: i is a release write or fence, j an acquire read or fence.
bool synchronizes(const std::vector<Event>& events, std::size_t i, std::size_t j) {
  const auto reads_of = [&]() {
    std::vector<std::size_t> reads;
    if (events[j].kind == EventKind::kFence) {
      for (std::size_t r = 0; r < j; ++r) {
        if (events[r].thread == events[j].thread && is_read(events[r].kind) &&
            events[r].order != MemoryOrder::kPlain) {
          reads.push_back(r);
        }
      }
    } else if (is_read(events[j].kind) && events[j].order != MemoryOrder::kPlain) {
      reads.push_back(j);
    }
    return reads;
  };
  if (!is_acquire(events[j].order) || !is_release(events[i].order)) return false;
  for (const std::size_t read : reads_of()) {
    for (const std::size_t head : sequence_heads(events, read)) {
      if (events[i].kind == EventKind::kFence) {
        if (i < head && events[i].thread == events[head].thread) return true;
      } else if (i == head) {
        return true;
      }
    }
  }
  return false;
}

// The round of every arrival and departure, by the rule: an arrival opens a round of its own iff
// somebody has departed from the latest one.
int round_of(const std::vector<Event>& events, std::size_t which) {
  int round = 0;
  bool leaving = false;
  std::vector<int> arrived(64, -1);
  for (std::size_t i = 0; i <= which; ++i) {
    const Event& event = events[i];
    if (event.kind == EventKind::kBarrierArrive) {
      if (leaving) ++round;
      leaving = false;
      arrived[event.thread] = round;
    } else if (event.kind == EventKind::kBarrierLeave && arrived[event.thread] == round) {
      leaving = true;
    }
  }
  return arrived[events[which].thread];
}

bool same_condition(const std::vector<Event>& events, std::size_t signal, std::size_t wait) {
  if (events[wait].outcome != OpOutcome::kOk || events[signal].address != events[wait].address)
    return false;
  for (std::size_t i = signal + 1; i < wait; ++i) {
    if (events[i].thread == events[wait].thread && events[i].kind == EventKind::kRelease)
      return false;
  }
  return true;
}

}  // namespace

std::vector<Event> random_run(std::uint64_t seed, const RunShape& shape) {
  return Generator(seed, shape).run();
}

std::string to_string(const std::vector<Event>& events) {
  std::string out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    out += fmt::format("{:2} t{} kind {} at {:#x}:{} order {} mode {} outcome {} value {}\n", i,
                       e.thread, static_cast<int>(e.kind), e.address,
                       static_cast<std::uint32_t>(e.size), static_cast<int>(e.order),
                       static_cast<int>(e.mode), static_cast<int>(e.outcome), e.value);
  }
  return out;
}

bool directly_before(const std::vector<Event>& events, std::size_t i, std::size_t j) {
  const Event& a = events[i];
  const Event& b = events[j];
  if (a.thread == b.thread) return true;
  if (a.kind == EventKind::kFork && a.value == b.thread) return true;
  if (b.kind == EventKind::kJoin && b.value == a.thread) return true;
  if (synchronizes(events, i, j)) return true;
  const bool ok = b.outcome == OpOutcome::kOk;
  switch (a.kind) {
    case EventKind::kRelease:
      return b.kind == EventKind::kAcquire && ok && a.address == b.address &&
             (a.mode == LockMode::kExclusive || b.mode == LockMode::kExclusive);
    case EventKind::kSignal:
    case EventKind::kBroadcast:
      return b.kind == EventKind::kWait && same_condition(events, i, j);
    case EventKind::kSemPost:
      return b.kind == EventKind::kSemWait && ok;
    case EventKind::kBarrierArrive:
      return b.kind == EventKind::kBarrierLeave && round_of(events, i) == round_of(events, j);
    case EventKind::kOnceEnd:
      return b.kind == EventKind::kOncePass || b.kind == EventKind::kOnceBegin;
    case EventKind::kOrderRelease:
      return b.kind == EventKind::kOrderAcquire;
    default:
      return false;
  }
}

std::vector<EventMask> happens_before_by_definition(const std::vector<Event>& events) {
  std::vector<EventMask> before(events.size());
  for (std::size_t j = 0; j < events.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (directly_before(events, i, j)) before[j] |= before[i] | (EventMask{1} << i);
    }
  }
  return before;
}

}  // namespace heddle::testing
