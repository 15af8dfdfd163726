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
  RecentRelease& known = recent_releases_[recent(event.address + event.thread)];
  if (known.index == ~0u || known.thread != event.thread || known.lock != event.address) {
    const auto next = static_cast<std::uint32_t>(releases_.size());
    const auto [at, is_new] = release_ids_.try_emplace({event.thread, event.address}, next);
    if (is_new) releases_.emplace_back();
    known = {event.thread, at->second, event.address};
  }
  Releases& releases = releases_[known.index];
  releases.last[releases.next] = {ordinal, event.site};
  releases.next = (releases.next + 1) % Releases::kKept;
}

ContextId Contexts::intern(ThreadId id) {
  if (id >= threads_.size()) threads_.resize(id + std::size_t{1});
  Thread& here = threads_[id];
  const StackId stack = stacks_.current(id);
  const LockSetId locks = held_.current(id);
  const std::uint64_t key = (std::uint64_t{stack} << 32) | locks;
  ContextId& known = recent_contexts_[recent(key)];
  if (contexts_[known].stack != stack || contexts_[known].locks != locks) {
    const auto [at, is_new] = context_ids_.try_emplace(key, contexts_.size());
    if (is_new) contexts_.push_back({.stack = stack, .locks = locks});
    known = at->second;
  }
  here.context = known;
  here.known = true;
  return here.context;
}

// A call, or a return, of which it is not known yet where it leads from there.
void Contexts::call(const Event& event, ContextId from) {
  stacks_.on(event);
  changed(event.thread);
  const ContextId to = current(event.thread);
  const auto function = static_cast<FunctionId>(event.value);
  if (event.kind == EventKind::kEnter) {
    recent_calls_[recent(from, function, event.site)] = {from, function, event.site, to};
  } else {
    contexts_[from].left = function;
    contexts_[from].outside = to;
  }
}

ContextId Contexts::look_inside(ContextId outside, ThreadId thread, FunctionId function,
                                SiteId site) {
  Event call;
  call.kind = EventKind::kEnter;
  call.thread = thread;
  call.value = function;
  call.site = site;
  on_call(call);
  const ContextId inside = current(thread);
  call.kind = EventKind::kLeave;
  on_call(call);
  recent_calls_[recent(outside, function, site)] = {outside, function, site, inside};
  return inside;
}

LetGo Contexts::let_go(ThreadId thread, Address lock, EventOrdinal after) const {
  LetGo earliest;
  const auto at = release_ids_.find({thread, lock});
  if (at == release_ids_.end()) return earliest;
  for (const LetGo& candidate : releases_[at->second].last) {
    if (candidate && candidate.ordinal > after && candidate.ordinal < earliest.ordinal) {
      earliest = candidate;
    }
  }
  return earliest;
}

}  // namespace heddle::avio
