// Contexts: where each thread is (its call stack) and what it holds (its locks), as one number that
// fits into a Touch.
//
// Numbers are given out lazily, at the first access after a call or a lock operation, and the same
// stack with the same locks has the same number, so memory grows with distinct contexts and not
// with the length of the run.
#pragma once

#include "detect/avio/touch.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

struct LetGo {
  EventOrdinal ordinal = kNoEvent;
  SiteId site = 0;
  explicit operator bool() const { return ordinal != kNoEvent; }
};

class Contexts {
 public:
  Contexts() : contexts_(1), context_ids_{{0, 0}} {}

  // Takes note of calls and lock operations; every other event is ignored.
  void on(const Event& event, EventOrdinal ordinal);
  // Most calls were made before, and where they lead is known.
  void on_call(const Event& event) {
    const ContextId here = current(event.thread);
    const auto function = static_cast<FunctionId>(event.value);
    if (event.kind == EventKind::kEnter) {
      const RecentCall& known = recent_calls_[recent(here, function, event.site)];
      if (known.is(here, function, event.site)) return go_to(event.thread, known.inside);
    } else if (contexts_[here].left == function && function != 0) {
      return go_to(event.thread, contexts_[here].outside);
    }
    call(event, here);
  }

  ContextId current(ThreadId thread) {
    const bool known = thread < threads_.size() && threads_[thread].known;
    return known ? threads_[thread].context : intern(thread);
  }

  // The context in which a function that is called by the thread runs, when the thread is at
  // `outside` now.
  ContextId inside(ContextId outside, ThreadId thread, FunctionId function, SiteId site) {
    const RecentCall& known = recent_calls_[recent(outside, function, site)];
    return known.is(outside, function, site) ? known.inside
                                             : look_inside(outside, thread, function, site);
  }

  StackId stack(ContextId context) const { return contexts_[context].stack; }
  std::vector<HeldLockRef> locks(ContextId context) const {
    return held_.locks(contexts_[context].locks);
  }
  const CallStacks& stacks() const { return stacks_; }

  // The earliest known moment after `ordinal` at which the thread let go of the lock. Only the last
  // few are remembered; that there is one is always known.
  LetGo let_go(ThreadId thread, Address lock, EventOrdinal after) const;

 private:
  struct Thread {
    bool known = false;  // `context` is up to date
    ContextId context = 0;
  };
  struct Context {
    StackId stack = 0;
    LockSetId locks = 0;
    // Where it leads that this function is left.
    FunctionId left = 0;
    ContextId outside = 0;
  };
  // Recent contexts and recent releases, by hash: most of them come again soon.
  static constexpr unsigned kRecentBits = 10;
  static std::size_t recent(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15u) >> (64 - kRecentBits);
  }
  struct RecentRelease {
    ThreadId thread = 0;
    std::uint32_t index = ~0u;  // of releases_
    Address lock = 0;
  };
  struct RecentCall {
    ContextId outside = 0;
    FunctionId function = 0;
    SiteId site = 0;
    ContextId inside = 0;

    bool is(ContextId from, FunctionId of, SiteId at) const {
      return outside == from && function == of && site == at && inside != 0;
    }
  };
  static constexpr std::size_t kRecentCalls = 1024;
  static std::size_t recent(ContextId outside, FunctionId function, SiteId site) {
    return (outside * std::size_t{0x9e3779b1} + site * std::size_t{5} + function) % kRecentCalls;
  }
  struct Releases {
    static constexpr std::size_t kKept = 4;
    std::array<LetGo, kKept> last;
    std::size_t next = 0;
  };

  void changed(ThreadId thread) {
    if (thread < threads_.size()) threads_[thread].known = false;
  }
  void go_to(ThreadId thread, ContextId context) {
    threads_[thread].context = context;
    stacks_.go_to(thread, contexts_[context].stack);
  }
  void call(const Event& event, ContextId from);
  ContextId intern(ThreadId thread);
  ContextId look_inside(ContextId outside, ThreadId thread, FunctionId function, SiteId site);
  void release(const Event& event, EventOrdinal ordinal);

  CallStacks stacks_;
  LocksHeld held_;
  std::vector<Thread> threads_;
  std::vector<Context> contexts_;
  absl::flat_hash_map<std::uint64_t, ContextId> context_ids_;
  std::array<ContextId, 1 << kRecentBits> recent_contexts_{};
  std::array<RecentCall, kRecentCalls> recent_calls_{};
  std::vector<Releases> releases_;
  absl::flat_hash_map<std::pair<ThreadId, Address>, std::uint32_t> release_ids_;
  std::array<RecentRelease, 1 << kRecentBits> recent_releases_;
};

}  // namespace heddle::avio
