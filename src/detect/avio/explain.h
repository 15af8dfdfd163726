// Explainer: from a triple to a finding that a person can read.
//
// It follows the trace for what a finding tells beside the triple: call stacks, locks, memory
// blocks, values. What a heap block is called is asked while it lives, so a finding is made when
// its first instance is at hand.
#pragma once

#include "detect/avio/context.h"
#include "detect/avio/finder.h"
#include "detect/avio/invariants.h"
#include "finding/describe.h"
#include "order/thread_lives.h"
#include "trace/catalog.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::avio {

// The values of recent accesses, as far as the trace has them.
class RecentValues {
 public:
  void on(const Event& event, EventOrdinal ordinal);
  std::optional<std::uint64_t> at(EventOrdinal ordinal) const;

 private:
  static constexpr std::size_t kKept = std::size_t{1} << 20;
  struct Entry {
    EventOrdinal ordinal = kNoEvent;
    std::uint64_t value = 0;
  };
  std::vector<Entry> entries_;  // by ordinal modulo kKept; empty until a value comes
};

class Explainer {
 public:
  // `finder` knows the threads and ordinals of touches.
  Explainer(const Catalog& catalog, const TripleFinder& finder, const Invariants* invariants)
      : catalog_(catalog), finder_(finder), invariants_(invariants), describer_(catalog) {}

  // Takes note of calls, locks and memory blocks.
  void on(const Event& event, EventOrdinal ordinal);
  // Takes note of an access and gives its context.
  ContextId on_access(const Event& event, EventOrdinal ordinal) {
    if (event.has_value) values_.on(event, ordinal);
    return contexts_.current(event.thread);
  }
  // The two of these apart.
  void on_value(const Event& event, EventOrdinal ordinal) { values_.on(event, ordinal); }
  ContextId context(ThreadId thread) { return contexts_.current(thread); }
  ContextId context_inside(ContextId outside, ThreadId thread, FunctionId function, SiteId site) {
    return contexts_.inside(outside, thread, function, site);
  }
  // on() for Enter and Leave.
  void on_call(const Event& event) { contexts_.on_call(event); }

  // `detector`: who says so.
  Finding describe(const Triple& triple, const char* detector) const;

  const Describer& describer() const { return describer_; }

 private:
  Step step(const Triple& triple, const Touch& touch, const char* role) const;
  bool by_order_of_threads(const Finding& finding) const;
  void explain_locks(const Triple& triple, Finding& finding) const;
  void explain_learning(const Triple& triple, Finding& finding) const;

  const Catalog& catalog_;
  const TripleFinder& finder_;
  const Invariants* invariants_;
  Contexts contexts_;
  Describer describer_;
  RecentValues values_;
  ThreadLives lives_;
  // Locks that the describer has last seen acquired at this site: it learns nothing more there.
  struct NamedLock {
    Address lock = 0;
    SiteId site = 0;
  };
  std::array<NamedLock, 256> named_locks_;
};

}  // namespace heddle::avio
