#include "order/happens_before.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr Address kPage = 4096;
constexpr Address kWidestAtomic = 16;

bool acquires(MemoryOrder order) {
  return order == MemoryOrder::kAcquire || order == MemoryOrder::kConsume ||
         order == MemoryOrder::kAcqRel || order == MemoryOrder::kSeqCst;
}

bool releases(MemoryOrder order) {
  return order == MemoryOrder::kRelease || order == MemoryOrder::kAcqRel ||
         order == MemoryOrder::kSeqCst;
}

}  // namespace

void HappensBefore::on(const Event& event, EventOrdinal ordinal) {
  const ThreadId thread = event.thread;
  const Time time = time_of(ordinal);
  const bool succeeded = event.outcome == OpOutcome::kOk;
  slot(thread);
  switch (event.kind) {
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kRmw:
      if (event.order == MemoryOrder::kPlain) break;
      on_atomic_read(event);
      on_atomic_write(event, ordinal);
      break;
    case EventKind::kFence:
      on_fence(event, time);
      break;
    case EventKind::kAcquire:
    case EventKind::kRelease:
      on_lock(event, time);
      break;
    case EventKind::kWait:
      if (succeeded) on_wait(event);
      break;
    case EventKind::kSignal:
    case EventKind::kBroadcast:
      on_signal(event, time);
      break;
    case EventKind::kSemPost:
    case EventKind::kOnceEnd:
      release(thread, object(channels_, event.address), time);
      break;
    case EventKind::kSemWait:
    case EventKind::kOnceBegin:
    case EventKind::kOncePass:
      if (succeeded) acquire(thread, object(channels_, event.address));
      break;
    case EventKind::kBarrierArrive:
      on_arrive(event, time);
      break;
    case EventKind::kBarrierLeave:
      on_leave(event);
      break;
    case EventKind::kOrderRelease:
      release(thread, object(announced_, event.address), time);
      break;
    case EventKind::kOrderAcquire:
      acquire(thread, object(announced_, event.address));
      break;
    case EventKind::kFork:
      fork(thread, static_cast<ThreadId>(event.value), time);
      break;
    case EventKind::kJoin:
      join(thread, static_cast<ThreadId>(event.value), time);
      break;
    case EventKind::kThreadBegin:
      // A thread whose Fork was not recorded comes after what its parent did so far.
      if (!threads_[thread].started && event.value < threads_.size() && event.value != thread &&
          threads_[event.value].slot != kNoSlot) {
        learn(thread, now(static_cast<ThreadId>(event.value), time));
      }
      break;
    case EventKind::kThreadEnd: {
      SlotState& mine = slots_[threads_[thread].slot];
      if (threads_[thread].end == 0) ended_slots_.push_back(threads_[thread].slot);
      threads_[thread].end = mine.ended = time;
      break;
    }
    case EventKind::kAlloc:
      blocks_[event.address] = event.value;
      break;
    case EventKind::kFree: {
      const auto block = blocks_.find(event.address);
      const std::uint64_t known = block == blocks_.end() ? 0 : block->second;
      on_free(event.address, event.value != 0 ? event.value : known);
      if (block != blocks_.end()) blocks_.erase(block);
      break;
    }
    default:
      break;
  }
  threads_[thread].started = true;
}

void HappensBefore::learn(ThreadId thread, const Moment& moment) {
  slot(thread);
  acquire(thread, moment);
}

// ---- threads ----------------------------------------------------------------------------------

void HappensBefore::start(ThreadId thread) {
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  const auto fresh = static_cast<Slot>(slots_.size());
  slots_.push_back({0, {{thread, 0}}});
  clocks_.make_room(fresh);
  threads_[thread].slot = fresh;
}

void HappensBefore::inherit(ThreadId thread, Slot slot, Time since) {
  threads_[thread].slot = slot;
  slots_[slot].ended = 0;
  slots_[slot].owners.push_back({thread, since});
  std::erase(ended_slots_, slot);
}

void HappensBefore::adopt_slot(ThreadId thread, Slot slot) {
  if (thread < threads_.size() && threads_[thread].slot != kNoSlot) return;
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  clocks_.make_room(slot);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  inherit(thread, slot, 0);
}

ThreadId HappensBefore::owner(Slot slot, Time time) const {
  ThreadId out = 0;
  for (const SlotState::Owner& owner : slots_[slot].owners) {
    if (owner.since <= time) out = owner.thread;
  }
  return out;
}

void HappensBefore::fork(ThreadId parent, ThreadId child, Time time) {
  if (child >= threads_.size()) threads_.resize(child + 1);
  if (threads_[child].slot == kNoSlot) {
    const ClockId known = threads_[parent].clock;
    const auto inherited = std::find_if(ended_slots_.begin(), ended_slots_.end(), [&](Slot slot) {
      return slot == threads_[parent].slot || clocks_.known(known, slot) >= slots_[slot].ended;
    });
    if (inherited != ended_slots_.end()) {
      inherit(child, *inherited, time);
    } else {
      start(child);
    }
  }
  threads_[child].started = true;
  acquire(child, now(parent, time));
}

void HappensBefore::join(ThreadId thread, ThreadId child, Time time) {
  if (child >= threads_.size() || threads_[child].slot == kNoSlot || child == thread) return;
  // A slot that was passed on says when its first owner ended; one that was not has no later owner
  // whose events `time` could cover by mistake.
  const Thread& ended = threads_[child];
  const Time last = ended.end != 0 ? ended.end : time;
  acquire(thread, {ended.clock, ended.slot, last});
}

void HappensBefore::acquire(ThreadId thread, const Moment& moment) {
  if (moment.empty()) return;
  Thread& me = threads_[thread];
  if (moment.slot == me.slot || clocks_.knows(me.clock, moment, me.slot)) return;
  me.clock = clocks_.join(me.clock, moment);
}

// Everything that was in `into` stays in it; mostly the thread knows it all, and then its own
// moment says everything.
void HappensBefore::release(ThreadId thread, Moment& into, Time time) {
  const Thread& me = threads_[thread];
  const Moment mine = now(thread, time);
  if (into.empty() || into.slot == me.slot || clocks_.knows(me.clock, into, me.slot)) {
    into = mine;
  } else {
    into = clocks_.join(into, mine);
  }
}

// ---- locks, conditions, barriers --------------------------------------------------------------

void HappensBefore::on_lock(const Event& event, Time time) {
  if (event.outcome != OpOutcome::kOk) return;
  Lock& lock = object(locks_, event.address);
  const bool shared = event.mode == LockMode::kShared;
  if (event.kind == EventKind::kAcquire) {
    acquire(event.thread, lock.exclusive);
    if (!shared) acquire(event.thread, lock.shared);
    return;
  }
  release(event.thread, shared ? lock.shared : lock.exclusive, time);
  threads_[event.thread].last_release = time;
}

void HappensBefore::on_signal(const Event& event, Time time) {
  std::vector<Moment>& signals = object(conditions_, event.address);
  const Moment mine = now(event.thread, time);
  for (Moment& signal : signals) {
    if (signal.slot == mine.slot) {
      signal = mine;
      return;
    }
  }
  signals.push_back(mine);
}

void HappensBefore::on_wait(const Event& event) {
  const auto condition = conditions_.find(event.address);
  if (condition == conditions_.end()) return;
  for (const Moment& signal : condition->second) {
    if (signal.time > threads_[event.thread].last_release) acquire(event.thread, signal);
  }
}

void HappensBefore::on_arrive(const Event& event, Time time) {
  Barrier& barrier = object(barriers_, event.address);
  if (barrier.rounds.empty() || barrier.rounds.back().leaving) barrier.rounds.emplace_back();
  Round& round = barrier.rounds.back();
  release(event.thread, round.arrived, time);
  ++round.inside;
  barrier.round_of[event.thread] = barrier.first_round + barrier.rounds.size() - 1;
}

void HappensBefore::on_leave(const Event& event) {
  const auto found = barriers_.find(event.address);
  if (found == barriers_.end()) return;
  Barrier& barrier = found->second;
  const auto mine = barrier.round_of.find(event.thread);
  if (mine == barrier.round_of.end() || mine->second < barrier.first_round) return;
  Round& round = barrier.rounds[mine->second - barrier.first_round];
  acquire(event.thread, round.arrived);
  round.leaving = true;
  --round.inside;
  barrier.round_of.erase(mine);
  while (!barrier.rounds.empty() && barrier.rounds.front().leaving &&
         barrier.rounds.front().inside == 0) {
    barrier.rounds.erase(barrier.rounds.begin());
    ++barrier.first_round;
  }
}

// ---- atomics and fences -----------------------------------------------------------------------

void HappensBefore::on_fence(const Event& event, Time time) {
  Thread& me = threads_[event.thread];
  if (acquires(event.order)) {
    acquire(event.thread, me.pending_acquire);
    me.pending_acquire = {};
  }
  if (releases(event.order)) me.release_fence = now(event.thread, time);
}

void HappensBefore::read_atomic(ThreadId thread, const Atomic& atomic, MemoryOrder order) {
  if (atomic.released.empty()) return;
  if (acquires(order)) {
    acquire(thread, atomic.released);
    return;
  }
  Thread& me = threads_[thread];
  if (clocks_.knows(me.clock, atomic.released, me.slot)) return;
  me.pending_acquire = me.pending_acquire.empty()
                           ? atomic.released
                           : clocks_.join(me.pending_acquire, atomic.released);
}

void HappensBefore::on_atomic_read(const Event& event) {
  if (!is_read(event.kind)) return;
  slot(event.thread);
  const Atomic& atomic = atomic_at(event.address, event.size);
  read_atomic(event.thread, atomic, event.order);
  if (!atomic.mixed) return;
  for (Address at = event.address - (kWidestAtomic - 1); at != event.address + event.size; ++at) {
    const auto other = atomics_.find(at);
    if (other == atomics_.end() || &other->second == &atomic) continue;
    if (at + other->second.size <= event.address) continue;
    read_atomic(event.thread, other->second, event.order);
  }
}

void HappensBefore::on_atomic_write(const Event& event, EventOrdinal ordinal, bool may_release) {
  if (!is_write(event.kind)) return;
  slot(event.thread);
  const Time time = time_of(ordinal);
  Atomic& atomic = atomic_at(event.address, event.size);
  const Thread& me = threads_[event.thread];
  Moment heads = releases(event.order) ? now(event.thread, time) : me.release_fence;
  if (!may_release) heads = {};
  if (event.kind == EventKind::kWrite && event.size >= atomic.size) {
    // A new value that no earlier release sequence reaches.
    atomic.released = heads;
    if (atomic.mixed) {
      for (Address at = event.address - (kWidestAtomic - 1); at != event.address + event.size;
           ++at) {
        const auto other = atomics_.find(at);
        if (other == atomics_.end() || &other->second == &atomic) continue;
        if (at >= event.address && at + other->second.size <= event.address + event.size) {
          other->second.released = {};
        }
      }
    }
    return;
  }
  // A read-modify-write goes on with the release sequences that reach it, and so does the part of
  // an object that a narrower write left alone.
  if (heads.empty()) return;
  Moment& released = atomic.released;
  if (!released.empty() && released.slot == heads.slot && heads.slot != kNoSlot) {
    if (released.time < heads.time) released = heads;
  } else if (released.empty() ||
             (heads.time == time && clocks_.knows(heads.clock, released, heads.slot))) {
    released = heads;
  } else {
    released = clocks_.join(released, heads);
  }
}

// Atomics are mostly accessed in one size. Where they are not (a 4-byte half of an 8-byte counter),
// the overlapping ones are marked once and consult each other from then on.
HappensBefore::Atomic& HappensBefore::atomic_at(Address address, std::uint32_t size) {
  if (const auto at = atomics_.find(address); at != atomics_.end()) {
    if (size <= at->second.size) return at->second;
    at->second.size = size;  // may reach over others now
  } else {
    object(atomics_, address).size = size;
  }
  bool mixed = false;
  for (Address at = address - (kWidestAtomic - 1); at != address + size; ++at) {
    const auto other = atomics_.find(at);
    if (at == address || other == atomics_.end()) continue;
    if (at + other->second.size <= address) continue;
    other->second.mixed = true;
    mixed = true;
  }
  Atomic& out = atomics_[address];
  out.mixed = out.mixed || mixed;
  return out;
}

// ---- memory -----------------------------------------------------------------------------------

void HappensBefore::register_object(Address address) {
  ++objects_;
  objects_on_page_[address / kPage].push_back(address);
}

void HappensBefore::on_free(Address address, std::uint64_t size) {
  if (objects_ == 0 || size == 0) return;
  const auto forget = [&](std::vector<Address>& page) {
    std::erase_if(page, [&](Address at) {
      if (at - address >= size) return false;
      locks_.erase(at);
      atomics_.erase(at);
      channels_.erase(at);
      announced_.erase(at);
      conditions_.erase(at);
      barriers_.erase(at);
      --objects_;
      return true;
    });
  };
  const Address first = address / kPage;
  const Address last = (address + size - 1) / kPage;
  if (last - first > objects_on_page_.size()) {
    for (auto& [page, objects] : objects_on_page_) forget(objects);
    return;
  }
  for (Address page = first; page <= last; ++page) {
    const auto at = objects_on_page_.find(page);
    if (at == objects_on_page_.end()) continue;
    forget(at->second);
    if (at->second.empty()) objects_on_page_.erase(at);
  }
}

void HappensBefore::begin_collection() {
  clocks_.begin_marking();
  for (const Thread& thread : threads_) {
    keep(thread.clock);
    keep(thread.release_fence.clock);
    keep(thread.pending_acquire.clock);
  }
  for (const auto& [address, lock] : locks_) {
    keep(lock.exclusive.clock);
    keep(lock.shared.clock);
  }
  for (const auto& [address, atomic] : atomics_) keep(atomic.released.clock);
  for (const auto& [address, moment] : channels_) keep(moment.clock);
  for (const auto& [address, moment] : announced_) keep(moment.clock);
  for (const auto& [address, signals] : conditions_) {
    for (const Moment& signal : signals) keep(signal.clock);
  }
  for (const auto& [address, barrier] : barriers_) {
    for (const Round& round : barrier.rounds) keep(round.arrived.clock);
  }
}

}  // namespace heddle
