#include "detect/avio/context.h"

namespace heddle::avio {

Contexts::Thread& Contexts::thread(ThreadId id) {
  if (id >= threads_.size()) threads_.resize(id + 1);
  return threads_[id];
}

void Contexts::on(const Event& event, EventOrdinal ordinal) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      stacks_.on(event);
      thread(event.thread).known = false;
      break;
    case EventKind::kAcquire:
      held_.on(event);
      thread(event.thread).known = false;
      break;
    case EventKind::kRelease:
      release(event, ordinal);
      thread(event.thread).known = false;
      break;
    default:
      break;
  }
}

void Contexts::release(const Event& event, EventOrdinal ordinal) {
  const bool held = held_.holds(held_.current(event.thread), event.address);
  held_.on(event);
  if (!held || held_.holds(held_.current(event.thread), event.address)) return;
  Releases& releases = releases_[{event.thread, event.address}];
  releases.last[releases.next] = {ordinal, event.site};
  releases.next = (releases.next + 1) % Releases::kKept;
}

ContextId Contexts::intern(ThreadId id) {
  Thread& here = threads_[id];
  const StackId stack = stacks_.current(id);
  if (stack >= memo_.size()) memo_.resize(stack + 1);
  const LockSetId locks = held_.current(id);
  Memo& memo = memo_[stack];
  if (memo.locks != locks) {
    const std::uint64_t key = (std::uint64_t{stack} << 32) | locks;
    auto [at, is_new] = context_ids_.try_emplace(key, contexts_.size());
    if (is_new) contexts_.push_back({stack, locks});
    memo = {locks, at->second};
  }
  here.context = memo.context;
  here.known = true;
  return here.context;
}

LetGo Contexts::let_go(ThreadId thread, Address lock, EventOrdinal after) const {
  LetGo earliest;
  auto at = releases_.find({thread, lock});
  if (at == releases_.end()) return earliest;
  for (const LetGo& candidate : at->second.last) {
    if (candidate && candidate.ordinal > after && candidate.ordinal < earliest.ordinal) {
      earliest = candidate;
    }
  }
  return earliest;
}

}  // namespace heddle::avio
