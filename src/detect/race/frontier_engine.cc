#include "detect/race/frontier_engine.h"

#include <algorithm>

namespace heddle::race {

Effect effect_of(const Event& event) {
  const bool succeeded = event.outcome == OpOutcome::kOk;
  switch (event.kind) {
    case EventKind::kRead:
      return Effect::kLooks;
    case EventKind::kWrite:
    case EventKind::kRmw:
      return Effect::kChanges;
    case EventKind::kAcquire:
    case EventKind::kRelease:
      if (!succeeded) return Effect::kNone;
      return event.mode == LockMode::kShared ? Effect::kLooks : Effect::kChanges;
    case EventKind::kSignal:
    case EventKind::kBroadcast:
    case EventKind::kSemPost:
    case EventKind::kBarrierArrive:
    case EventKind::kOnceBegin:
    case EventKind::kOnceEnd:
    case EventKind::kOrderRelease:
      return Effect::kChanges;
    case EventKind::kSemWait:
      return succeeded ? Effect::kChanges : Effect::kNone;
    case EventKind::kWait:
      return succeeded ? Effect::kLooks : Effect::kNone;
    case EventKind::kBarrierLeave:
    case EventKind::kOncePass:
    case EventKind::kOrderAcquire:
      return Effect::kLooks;
    default:
      return Effect::kNone;
  }
}

const std::vector<FrontierEngine::Pair>& FrontierEngine::on(const Event& event,
                                                            EventOrdinal ordinal) {
  candidates_.clear();
  switch (event.kind) {
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
      order_.on(event, ordinal);
      return candidates_;
    case EventKind::kAlloc:
      pieces_.clear(event.address, event.value);
      blocks_[event.address] = event.value;
      return candidates_;
    case EventKind::kFree: {
      const auto block = blocks_.find(event.address);
      std::uint64_t size = event.value;
      if (block != blocks_.end()) {
        if (size == 0) size = block->second;
        blocks_.erase(block);
      }
      pieces_.clear(event.address, size);
      return candidates_;
    }
    default:
      break;
  }
  const Effect effect = effect_of(event);
  if (effect == Effect::kNone) return candidates_;

  const ThreadId thread = event.thread;
  Seen now;
  now.access = {time_of(ordinal), order_.slot(thread), event.site, stacks_.current(thread),
                locks_.current(thread)};
  now.kind = event.kind;
  now.atomic = event.order != MemoryOrder::kPlain;
  touched_.clear();
  if (is_sync_object(event)) {
    gather(objects_[event.address], effect, event.address, thread);
  } else {
    pieces_.cover(event.address, event.size, [&](CellId id, Address address) {
      gather(pieces_[id], effect, address, thread);
      touched_.push_back(id);
    });
  }

  // An order that leads through another of them is not tight. What follows is known by all.
  std::vector<Moment> learned;
  learned.reserve(candidates_.size());
  for (const Pair& pair : candidates_) {
    learned.push_back({pair.earlier.clock, pair.earlier.access.slot, pair.earlier.access.time});
  }
  std::erase_if(candidates_, [&](const Pair& pair) {
    const Access& access = pair.earlier.access;
    return std::any_of(learned.begin(), learned.end(), [&](const Moment& other) {
      const bool itself = other.slot == access.slot && other.time == access.time;
      return !itself &&
             (other.slot == access.slot ? other.time > access.time
                                        : order_.known(other.clock, access.slot) >= access.time);
    });
  });
  for (const Moment& moment : learned) order_.learn(thread, moment);
  now.clock = order_.clock(thread);
  for (Pair& pair : candidates_) pair.later = now;

  if (is_sync_object(event)) {
    leave_behind(objects_[event.address], effect, now);
  } else {
    for (const CellId id : touched_) leave_behind(pieces_[id], effect, now);
  }
  collect_if_crowded();
  return candidates_;
}

void FrontierEngine::gather(const Cell& cell, Effect effect, Address address, ThreadId thread) {
  const auto add = [&](const Seen& earlier) {
    if (order_.ordered(earlier.access.slot, earlier.access.time, thread)) return;
    candidates_.push_back({address, earlier, {}});
  };
  if (cell.write.access.time != 0) add(cell.write);
  if (effect == Effect::kChanges && cell.reads != 0) {
    for (const Seen& read : reads_[cell.reads]) add(read);
  }
}

void FrontierEngine::leave_behind(Cell& cell, Effect effect, const Seen& now) {
  if (effect == Effect::kChanges) {
    dropped(cell);
    cell.write = now;
    return;
  }
  if (cell.reads == 0) {
    cell.reads = reads_.take();
  }
  std::vector<Seen>& reads = reads_[cell.reads];
  const auto mine = std::find_if(reads.begin(), reads.end(), [&](const Seen& read) {
    return read.access.slot == now.access.slot;
  });
  if (mine != reads.end()) {
    *mine = now;
  } else {
    reads.push_back(now);
  }
}

void FrontierEngine::copied(Cell& cell) {
  reads_.copied(cell.reads);
}

void FrontierEngine::dropped(Cell& cell) {
  reads_.drop(cell.reads);
}

void FrontierEngine::collect_if_crowded() {
  if (!order_.wants_collection(pieces_.size() + objects_.size() + reads_.size())) return;
  order_.begin_collection();
  for (const Cell& cell : pieces_.all()) order_.keep(cell.write.clock);
  for (const auto& [address, cell] : objects_) order_.keep(cell.write.clock);
  for (const std::vector<Seen>& list : reads_.all()) {
    for (const Seen& read : list) order_.keep(read.clock);
  }
  order_.end_collection();
}

}  // namespace heddle::race
