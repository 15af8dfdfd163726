// TripleFinder: from events to triples. It follows threads and memory blocks and feeds the Shadow.
//
// A thread that begins again, or goes on after its end, is a new actor; memory that is allocated or
// freed is forgotten. Thread stacks are blocks like others: the runtime announces them by Alloc and
// Free.
//
// Most of the time of an access is waiting for its shadow. Who has the next events at hand says so
// by expect(); the state of each is then on its way while those before it are being judged.
#pragma once

#include "detect/avio/shadow.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

class TripleFinder {
 public:
  TripleFinder(unsigned granule, TripleSink& sink, PairLog* pairs = nullptr)
      : shadow_(granule, sink, pairs) {}

  static constexpr std::size_t kMostExpected = 32;
  // These events, kMostExpected at most, come next, each by access() or on(), as an element of this
  // span; until others are expected.
  void expect(std::span<const Event> events);

  // An access; `context` comes back in the triples.
  Touch access(const Event& event, EventOrdinal ordinal, ContextId context) {
    if (ordinal - base_ > Touch::kMaxOrdinal) start_over(ordinal);
    if (event.thread != thread_) go_on_with(event.thread);
    const Touch touch = Touch::make(actor_, event.kind, ordinal - base_, event.site, context);
    shadow_.access(touch, *lanes_, cell_of(event), event.address, event.size);
    return touch;
  }
  const Shadow& shadow() const { return shadow_; }

  // Takes note of threads and memory blocks; every other event is ignored.
  void on(const Event& event);

  EventOrdinal ordinal(const Touch& touch) const { return base_ + touch.ordinal(); }
  ThreadId thread(const Touch& touch) const { return threads_[touch.actor()]; }

 private:
  static constexpr Actor kNone = ~Actor{0};

  static constexpr ThreadId kNoThread = ~ThreadId{0};

  Shadow::Cell& cell_of(const Event& event) {
    const std::size_t index =
        (reinterpret_cast<std::uintptr_t>(&event) - reinterpret_cast<std::uintptr_t>(expected_)) /
        sizeof(Event);
    const bool located = index < expected_count_ && moves_ == shadow_.moves();
    return located ? *cells_[index] : *shadow_.locate(event.address);
  }
  void go_on_with(ThreadId thread) {
    const bool known = thread < actors_.size() && actors_[thread] != kNone;
    actor_ = known ? actors_[thread] : new_actor(thread);
    thread_ = thread;
    lanes_ = &shadow_.lanes(actor_);
  }
  Actor new_actor(ThreadId thread);
  void retire(ThreadId thread);
  void start_over(EventOrdinal ordinal);

  Shadow shadow_;
  EventOrdinal base_ = 0;
  ThreadId thread_ = kNoThread;  // of the access before, if it is what it was
  Actor actor_ = 0;
  Lanes* lanes_ = nullptr;
  const Event* expected_ = nullptr;
  std::size_t expected_count_ = 0;
  std::uint64_t moves_ = 0;                             // Shadow::moves when they were located
  std::array<Shadow::Cell*, kMostExpected> cells_{};    // of the accesses among them
  std::vector<Actor> actors_;                           // by thread id
  std::vector<ThreadId> threads_;                       // by actor
  absl::flat_hash_map<Address, std::uint64_t> blocks_;  // sizes, for a Free that does not say
};

}  // namespace heddle::avio
