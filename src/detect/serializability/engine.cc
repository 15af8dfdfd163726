#include "detect/serializability/engine.h"

#include <algorithm>

namespace heddle::serializability {

void Engine::on(const Event& event, EventOrdinal ordinal) {
  switch (event.kind) {
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kRmw:
      return on_access(event, ordinal);
    case EventKind::kAcquire:
    case EventKind::kRelease:
      return on_lock(event, ordinal);
    case EventKind::kFork:
      return on_fork(event, ordinal);
    case EventKind::kJoin:
      return on_join(event, ordinal);
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
      return on_unit(event, ordinal);
    case EventKind::kThreadEnd:
      slot(event.thread);
      threads_[event.thread].ended = true;
      return;
    case EventKind::kAlloc:
      variables_.clear(event.address, event.value);
      blocks_[event.address] = event.value;
      return;
    case EventKind::kFree: {
      const auto block = blocks_.find(event.address);
      std::uint64_t size = event.value;
      if (block != blocks_.end()) {
        if (size == 0) size = block->second;
        blocks_.erase(block);
      }
      variables_.clear(event.address, size);
      return;
    }
    case EventKind::kEnter:
    case EventKind::kLeave:
      slot(event.thread);
      threads_[event.thread].stack = stacks_.current(event.thread);
      return;
    default:
      return;
  }
}

// ---- threads ----------------------------------------------------------------------------------

void Engine::start(ThreadId thread) {
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  const Slot slot = transactions_.add_slot();
  threads_[thread].slot = slot;
  last_.resize(slot + 1);
  owners_.resize(slot + 1);
  owners_[slot].push_back({thread, 0});
}

ThreadId Engine::thread(const Touch& touch) const {
  ThreadId out = 0;
  for (const Owner& owner : owners_[touch.slot]) {
    if (owner.since <= touch.time) out = owner.thread;
  }
  return out;
}

void Engine::on_fork(const Event& event, EventOrdinal ordinal) {
  const Touch now = touch(event, ordinal);
  const auto child = static_cast<ThreadId>(event.value);
  if (child >= threads_.size() || threads_[child].slot == kNoSlot) {
    if (child >= threads_.size()) threads_.resize(child + 1);
    std::vector<Slot>& spare = threads_[event.thread].spare;
    if (!spare.empty()) {
      threads_[child].slot = spare.back();
      transactions_.pass_on(spare.back(), now.time);
      owners_[spare.back()].push_back({child, now.time});
      spare.pop_back();
    }
    slot(child);
  }
  Touch beginning = now;
  beginning.slot = threads_[child].slot;
  beginning.since_begin = 0;
  order(now, beginning, EdgeKind::kFork, 0);
}

void Engine::on_join(const Event& event, EventOrdinal ordinal) {
  const Touch now = touch(event, ordinal);
  const auto child = static_cast<ThreadId>(event.value);
  if (child >= threads_.size() || threads_[child].slot == kNoSlot || child == event.thread) return;
  Thread& joined = threads_[child];
  Touch last;
  last.time = last_[joined.slot].time;
  last.slot = joined.slot;
  last.site = last_[joined.slot].site;
  last.kind = last_[joined.slot].kind;
  last.since_begin = last_[joined.slot].since_begin;
  // The slot's latest event is the child's unless the slot was passed on, and then the child's end
  // is known here already.
  if (last.time != 0 && thread(last) == child) order(last, now, EdgeKind::kJoin, 0);
  if (joined.ended && !joined.joined && joined.depth == 0) {
    joined.joined = true;
    threads_[event.thread].spare.push_back(joined.slot);
  }
}

void Engine::on_unit(const Event& event, EventOrdinal ordinal) {
  const Touch now = touch(event, ordinal);
  Thread& me = threads_[event.thread];
  if (event.kind == EventKind::kUnitBegin) {
    if (me.depth++ == 0) transactions_.begin(me.slot, now.time);
  } else if (me.depth != 0 && --me.depth == 0) {
    transactions_.end(me.slot);
  }
}

// ---- conflicts --------------------------------------------------------------------------------

void Engine::order_slowly(const Touch& source, const Touch& target, EdgeKind kind, Address object) {
  if (!transactions_.order(source, target, kind, object)) return;
  if (last_violation_ == target.time) return;  // one per event
  last_violation_ = target.time;
  ++violations_;
  const Edge closing{source, target, object, kind};
  if (!sink_.wants(closing)) return;
  const std::vector<Edge> cycle = transactions_.witness(source, target, kind, object);
  sink_.on_violation({cycle});
}

void Engine::on_access(const Event& event, EventOrdinal ordinal) {
  const Touch now = touch(event, ordinal);
  const auto visit = [&](CellId id, Address address) {
    if (is_write(event.kind)) {
      write(variables_[id], now, EdgeKind::kVariable, address);
    } else {
      read(variables_[id], now, EdgeKind::kVariable, address);
    }
  };
  if (const CellId id = variables_.find_exactly(event.address, event.size)) {
    visit(id, event.address);
  } else {
    variables_.cover(event.address, event.size, visit);
  }
}

void Engine::on_lock(const Event& event, EventOrdinal ordinal) {
  if (event.outcome != OpOutcome::kOk) return;
  slot(event.thread);
  threads_[event.thread].locks = locks_.current(event.thread);
  const Touch now = touch(event, ordinal);
  History& history = lock_histories_[event.address];
  if (event.mode == LockMode::kExclusive) {
    write(history, now, EdgeKind::kLock, event.address);
  } else {
    read(history, now, EdgeKind::kLock, event.address);
  }
}

void Engine::read(History& history, const Touch& now, EdgeKind kind, Address object) {
  if (history.write.time != 0) order(history.write, now, kind, object);
  if (history.read.time == 0 || history.read.slot == now.slot) {
    history.read = now;
    return;
  }
  if (history.further == 0) {
    history.further = further_.take();
  }
  for (Touch& other : further_[history.further]) {
    if (other.slot != now.slot) continue;
    other = now;
    return;
  }
  further_[history.further].push_back(now);
}

void Engine::write(History& history, const Touch& now, EdgeKind kind, Address object) {
  if (history.write.time != 0) order(history.write, now, kind, object);
  if (history.read.time != 0) order(history.read, now, kind, object);
  if (history.further != 0) {
    for (const Touch& other : further_[history.further]) order(other, now, kind, object);
    dropped(history);
  }
  history.write = now;
  history.read.time = 0;
}

void Engine::copied(History& history) {
  further_.copied(history.further);
}

void Engine::dropped(History& history) {
  further_.drop(history.further);
}

}  // namespace heddle::serializability
