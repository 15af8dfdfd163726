// Call stacks of all threads, rebuilt from Enter and Leave.
//
// A stack is a node of a tree of calls (its parent is the caller's stack), so the stack of an
// access is one number that a detector can keep in its shadow state; threads that made the same
// calls share nodes. Memory grows with the number of distinct stacks, not with the length of the
// run.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace heddle {

using StackId = std::uint32_t;  // 0 = the empty stack

class CallStacks {
 public:
  struct Frame {
    FunctionId function{};
    SiteId call_site{};  // where `function` was called, if known
  };

  CallStacks();

  // Takes note of Enter and Leave; every other event is ignored.
  void on(const Event& event);

  // Where `thread` is now.
  StackId current(ThreadId thread) const { return thread < now_.size() ? now_[thread] : 0; }

  // Innermost first.
  std::vector<Frame> frames(StackId stack) const;

 private:
  struct Node {
    StackId parent{};
    Frame frame;
  };

  StackId child(StackId parent, Frame frame);
  StackId leave(StackId stack, FunctionId function) const;

  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::vector<StackId>> children_;  // by parent and function
  std::vector<StackId> now_;                                          // by thread
};

}  // namespace heddle
