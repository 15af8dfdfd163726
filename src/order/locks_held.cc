#include "order/locks_held.h"

#include <algorithm>

namespace heddle {

LocksHeld::LocksHeld() : nodes_(1) {}

void LocksHeld::on(const Event& event) {
  if (event.kind != EventKind::kAcquire && event.kind != EventKind::kRelease) return;
  if (event.outcome != OpOutcome::kOk) return;
  if (event.thread >= now_.size()) now_.resize(event.thread + 1, 0);
  LockSetId& now = now_[event.thread];
  now = event.kind == EventKind::kAcquire ? child(now, {event.address, event.mode, event.site})
                                          : without(now, event.address, event.mode);
}

std::vector<HeldLockRef> LocksHeld::locks(LockSetId set) const {
  std::vector<HeldLockRef> out;
  for (LockSetId at = set; at != 0; at = nodes_[at].parent) out.push_back(nodes_[at].held);
  std::reverse(out.begin(), out.end());
  std::size_t kept = 0;
  for (const HeldLockRef& held : out) {
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(kept);
    const auto known =
        std::find_if(out.begin(), end, [&](const HeldLockRef& h) { return h.lock == held.lock; });
    if (known == end) {
      out[kept++] = held;
    } else if (held.mode == LockMode::kExclusive) {
      known->mode = LockMode::kExclusive;
    }
  }
  out.resize(kept);
  return out;
}

bool LocksHeld::holds(LockSetId set, Address lock) const {
  for (LockSetId at = set; at != 0; at = nodes_[at].parent) {
    if (nodes_[at].held.lock == lock) return true;
  }
  return false;
}

bool LocksHeld::exclude_each_other(LockSetId a, LockSetId b) const {
  for (LockSetId at = a; at != 0; at = nodes_[at].parent) {
    const HeldLockRef& mine = nodes_[at].held;
    for (LockSetId other = b; other != 0; other = nodes_[other].parent) {
      const HeldLockRef& theirs = nodes_[other].held;
      if (mine.lock == theirs.lock &&
          (mine.mode == LockMode::kExclusive || theirs.mode == LockMode::kExclusive)) {
        return true;
      }
    }
  }
  return false;
}

LockSetId LocksHeld::child(LockSetId parent, const HeldLockRef& held) {
  LockSetId& recent_one = recent_[recent(parent, held)];
  const Node& last = nodes_[recent_one];
  if (recent_one != 0 && last.parent == parent && last.held == held) return recent_one;
  const auto next = static_cast<LockSetId>(nodes_.size());
  const auto [at, is_new] = children_.try_emplace({parent, held}, next);
  if (is_new) nodes_.push_back({parent, held});
  return recent_one = at->second;
}

// The innermost acquisition of `lock` in that mode goes; where the modes of acquire and release
// disagree, its innermost acquisition in any mode.
LockSetId LocksHeld::without(LockSetId set, Address lock, LockMode mode) {
  const HeldLockRef& innermost = nodes_[set].held;
  if (set != 0 && innermost.lock == lock && innermost.mode == mode) return nodes_[set].parent;

  LockSetId victim = 0;
  for (LockSetId at = set; at != 0; at = nodes_[at].parent) {
    if (nodes_[at].held.lock != lock) continue;
    if (victim == 0) victim = at;
    if (nodes_[at].held.mode == mode) {
      victim = at;
      break;
    }
  }
  if (victim == 0) return set;
  std::vector<HeldLockRef> above;
  for (LockSetId at = set; at != victim; at = nodes_[at].parent) above.push_back(nodes_[at].held);
  LockSetId out = nodes_[victim].parent;
  for (auto held = above.rbegin(); held != above.rend(); ++held) out = child(out, *held);
  return out;
}

}  // namespace heddle
