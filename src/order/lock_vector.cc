#include "order/lock_vector.h"

#include <algorithm>

namespace heddle {
namespace {

template <typename Counts>
auto entry_of(Counts& counts, Address lock) {
  return std::lower_bound(counts.begin(), counts.end(), lock,
                          [](const LockVector::Count& c, Address a) { return c.lock < a; });
}

// Walks two sorted vectors in step; `choose` gets both counts of every lock in either.
template <typename Choose>
std::vector<LockVector::Count> merge(const std::vector<LockVector::Count>& a,
                                     const std::vector<LockVector::Count>& b, Choose choose) {
  std::vector<LockVector::Count> out;
  auto at_a = a.begin();
  auto at_b = b.begin();
  while (at_a != a.end() || at_b != b.end()) {
    const bool from_a = at_b == b.end() || (at_a != a.end() && at_a->lock <= at_b->lock);
    const bool from_b = at_a == a.end() || (at_b != b.end() && at_b->lock <= at_a->lock);
    const Address lock = from_a ? at_a->lock : at_b->lock;
    const LockVector::Count none{lock, 0, 0};
    const LockVector::Count chosen = choose(from_a ? *at_a : none, from_b ? *at_b : none);
    if (chosen != none) out.push_back(chosen);
    if (from_a) ++at_a;
    if (from_b) ++at_b;
  }
  return out;
}

}  // namespace

LockVector::Count LockVector::count(Address lock) const {
  const auto at = entry_of(counts_, lock);
  return at != counts_.end() && at->lock == lock ? *at : Count{lock, 0, 0};
}

bool LockVector::holds(Address lock) const {
  const Count c = count(lock);
  return c.acquired != c.released;
}

void LockVector::acquire(Address lock) {
  auto at = entry_of(counts_, lock);
  if (at == counts_.end() || at->lock != lock) at = counts_.insert(at, {lock, 0, 0});
  ++at->acquired;
}

void LockVector::release(Address lock) {
  const auto at = entry_of(counts_, lock);
  if (at != counts_.end() && at->lock == lock && at->released < at->acquired) ++at->released;
}

LockVector LockVector::min(const LockVector& a, const LockVector& b) {
  LockVector out;
  out.counts_ = merge(a.counts_, b.counts_, [](const Count& x, const Count& y) {
    return Count{x.lock, std::min(x.acquired, y.acquired), std::min(x.released, y.released)};
  });
  return out;
}

LockVector LockVector::max(const LockVector& a, const LockVector& b) {
  LockVector out;
  out.counts_ = merge(a.counts_, b.counts_, [](const Count& x, const Count& y) {
    return Count{x.lock, std::max(x.acquired, y.acquired), std::max(x.released, y.released)};
  });
  return out;
}

std::vector<Address> LockVector::held_throughout(const LockVector& first, const LockVector& last) {
  std::vector<Address> out;
  for (const Count& at_first : first.counts_) {
    if (at_first.acquired - at_first.released != 1) continue;
    if (last.count(at_first.lock).released == at_first.released) out.push_back(at_first.lock);
  }
  return out;
}

void LockVectors::on(const Event& event) {
  if (event.kind != EventKind::kAcquire && event.kind != EventKind::kRelease) return;
  if (event.outcome != OpOutcome::kOk) return;
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  PerThread& thread = threads_[event.thread];
  const auto held = std::find_if(thread.held.begin(), thread.held.end(),
                                 [&](const Depth& d) { return d.lock == event.address; });
  if (event.kind == EventKind::kAcquire) {
    if (held != thread.held.end()) {
      ++held->depth;
      return;
    }
    thread.held.push_back({event.address, 1});
    thread.vector.acquire(event.address);
  } else if (held != thread.held.end() && --held->depth == 0) {
    thread.held.erase(held);
    thread.vector.release(event.address);
  }
}

}  // namespace heddle
