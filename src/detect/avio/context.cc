#include "detect/avio/context.h"

namespace heddle::avio {

void Contexts::on(const Event& event, EventOrdinal ordinal) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      on_call(event);
      break;
    case EventKind::kAcquire:
      held_.on(event);
      changed(event.thread);
      break;
    case EventKind::kRelease:
      release(event, ordinal);
      changed(event.thread);
      break;
    default:
      break;
  }
}

void Contexts::release(const Event& event, EventOrdinal ordinal) {
  const LockSetId before = held_.current(event.thread);
  held_.on(event);
  const LockSetId after = held_.current(event.thread);
  if (after == before || held_.holds(after, event.address)) return;
  Releases& releases = releases_[{event.thread, event.address}];
  releases.last[releases.next] = {ordinal, event.site};
  releases.next = (releases.next + 1) % Releases::kKept;
}

ContextId Contexts::intern(ThreadId id) {
  if (id >= threads_.size()) threads_.resize(id + std::size_t{1});
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
