// Witness: one access as a detector remembers it, in numbers; Narrator: the words for it.
//
// A detector keeps witnesses in its shadow state (stack and locks are one number each) and asks the
// narrator for a Step of a finding while the instance is at hand. The narrator follows the trace:
// feed it every event before asking about that event.
#pragma once

#include "finding/describe.h"
#include "finding/finding.h"
#include "order/locks_held.h"
#include "trace/call_stacks.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <string>
#include <vector>

namespace heddle {

struct Witness {
  ThreadId thread{};
  EventKind kind{};
  MemoryOrder order{};
  SiteId site{};
  StackId stack{};
  LockSetId locks{};
  std::uint32_t size{};
  bool has_value = false;
  EventOrdinal ordinal = kNoEvent;
  Address address{};
  std::uint64_t value{};
};

class Narrator {
 public:
  explicit Narrator(const Catalog& catalog) : describe_(catalog) {}

  void on(const Event& event);
  // The same for one Enter, and for one Leave.
  void enter(ThreadId thread, FunctionId function, SiteId site) {
    stacks_.enter(thread, {function, site});
  }
  void leave(ThreadId thread, FunctionId function) { stacks_.leave(thread, function); }

  // `event` as it is seen now: with the stack and the locks of its thread at this moment.
  Witness witness(const Event& event, EventOrdinal ordinal) const;

  Step step(const Witness& witness, std::string role) const;
  VariableName variable(const Witness& witness) const;
  std::vector<HeldLock> locks(LockSetId set) const;

  const CallStacks& stacks() const { return stacks_; }
  const LocksHeld& locks_held() const { return locks_; }
  const Describer& describe() const { return describe_; }

 private:
  CallStacks stacks_;
  LocksHeld locks_;
  Describer describe_;
};

}  // namespace heddle
