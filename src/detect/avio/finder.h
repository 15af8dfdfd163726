// TripleFinder: from events to triples. It follows threads and memory blocks and feeds the Shadow.
//
// A thread that begins again, or goes on after its end, is a new actor; memory that is allocated or
// freed is forgotten. Thread stacks are blocks like others: the runtime announces them by Alloc and
// Free.
#pragma once

#include "detect/avio/shadow.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

class TripleFinder {
 public:
  TripleFinder(unsigned granule, TripleSink& sink, PairLog* pairs = nullptr)
      : shadow_(granule, sink, pairs) {}

  // An access; `context` comes back in the triples.
  Touch access(const Event& event, EventOrdinal ordinal, ContextId context) {
    if (ordinal - base_ > Touch::kMaxOrdinal) start_over(ordinal);
    const Touch touch =
        Touch::make(actor_of(event.thread), event.kind, ordinal - base_, event.site, context);
    shadow_.access(touch, event.address, event.size);
    return touch;
  }
  const Shadow& shadow() const { return shadow_; }

  // For accesses to come, in three steps: the cell, its history, the thread's place in there.
  void prefetch_slot(const Event& event) const {
    if (event.thread < actors_.size()) shadow_.prefetch_slot(event.address, actors_[event.thread]);
  }

  // Takes note of threads and memory blocks; every other event is ignored.
  void on(const Event& event);

  EventOrdinal ordinal(const Touch& touch) const { return base_ + touch.ordinal(); }
  ThreadId thread(const Touch& touch) const { return threads_[touch.actor()]; }

 private:
  static constexpr Actor kNone = ~Actor{0};

  Actor actor_of(ThreadId thread) {
    return thread < actors_.size() && actors_[thread] != kNone ? actors_[thread]
                                                               : new_actor(thread);
  }
  Actor new_actor(ThreadId thread);
  void retire(ThreadId thread);
  void start_over(EventOrdinal ordinal);

  Shadow shadow_;
  EventOrdinal base_ = 0;
  std::vector<Actor> actors_;                           // by thread id
  std::vector<ThreadId> threads_;                       // by actor
  absl::flat_hash_map<Address, std::uint64_t> blocks_;  // sizes, for a Free that does not say
};

}  // namespace heddle::avio
