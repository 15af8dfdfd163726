// Call stacks of all threads, rebuilt from Enter and Leave.
//
// A stack is a node of a tree of calls (its parent is the caller's stack), so the stack of an
// access is one number that a detector can keep in its shadow state; threads that made the same
// calls share nodes. Memory grows with the number of distinct stacks, not with the length of the
// run.
#pragma once

#include "trace/event.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle {

using StackId = std::uint32_t;  // 0 = the empty stack

class CallStacks {
 public:
  struct Frame {
    FunctionId function{};
    SiteId call_site{};  // where `function` was called, if known

    bool operator==(const Frame&) const = default;
  };

  CallStacks();

  // Takes note of Enter and Leave; every other event is ignored.
  void on(const Event& event);

  // The same of one Enter, and of one Leave.
  void enter(ThreadId thread, Frame frame) {
    if (thread >= now_.size()) now_.resize(thread + std::size_t{1}, 0);
    const StackId now = now_[thread];
    const StackId known = recent_[recent(now, frame)];
    const bool same = known != 0 && nodes_[known].parent == now && nodes_[known].frame == frame;
    now_[thread] = same ? known : child(now, frame);
  }
  void leave(ThreadId thread, FunctionId function) {
    if (thread >= now_.size()) now_.resize(thread + std::size_t{1}, 0);
    const Node& now = nodes_[now_[thread]];
    const bool is_innermost = now_[thread] != 0 && now.frame.function == function;
    now_[thread] = is_innermost ? now.parent : left(now_[thread], function);
  }

  // The thread makes a call, or returns, and it is known already where that leads.
  void go_to(ThreadId thread, StackId stack) {
    if (thread >= now_.size()) now_.resize(thread + std::size_t{1}, 0);
    now_[thread] = stack;
  }

  // Where `thread` is now.
  StackId current(ThreadId thread) const { return thread < now_.size() ? now_[thread] : 0; }

  // Innermost first.
  std::vector<Frame> frames(StackId stack) const;

 private:
  struct Node {
    StackId parent{};
    Frame frame;
  };
  struct ChildKey {
    StackId parent{};
    Frame frame;

    bool operator==(const ChildKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const ChildKey& key) {
      return H::combine(std::move(hash), key.parent, key.frame.function, key.frame.call_site);
    }
  };

  StackId child(StackId parent, Frame frame);
  StackId left(StackId stack, FunctionId function) const;

  static constexpr std::size_t kRecent = 1024;
  static std::size_t recent(StackId parent, const Frame& frame) {
    return (parent * std::size_t{0x9e3779b1} + frame.call_site * std::size_t{5} + frame.function) %
           kRecent;
  }

  std::vector<Node> nodes_;
  std::array<StackId, kRecent> recent_{};  // most calls were made before
  absl::flat_hash_map<ChildKey, StackId> children_;
  std::vector<StackId> now_;  // by thread
};

}  // namespace heddle
