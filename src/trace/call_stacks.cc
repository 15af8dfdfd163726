#include "trace/call_stacks.h"

namespace heddle {

CallStacks::CallStacks() : nodes_(1) {}

void CallStacks::on(const Event& event) {
  if (event.kind != EventKind::kEnter && event.kind != EventKind::kLeave) return;
  const auto function = static_cast<FunctionId>(event.value);
  if (event.kind == EventKind::kEnter) {
    enter(event.thread, {function, event.site});
  } else {
    leave(event.thread, function);
  }
}

std::vector<CallStacks::Frame> CallStacks::frames(StackId stack) const {
  std::vector<Frame> out;
  for (; stack != 0; stack = nodes_[stack].parent) out.push_back(nodes_[stack].frame);
  return out;
}

StackId CallStacks::child(StackId parent, Frame frame) {
  StackId& known = recent_[recent(parent, frame)];
  if (known != 0 && nodes_[known].parent == parent && nodes_[known].frame == frame) return known;
  const auto next = static_cast<StackId>(nodes_.size());
  const auto [at, is_new] = children_.try_emplace({parent, frame}, next);
  if (is_new) nodes_.push_back({parent, frame});
  return known = at->second;
}

// Frames that were left without a Leave (longjmp, a lost record) go with the function that is known
// to end. A Leave of a function that is not on the stack changes nothing.
StackId CallStacks::left(StackId stack, FunctionId function) const {
  for (StackId at = stack; at != 0; at = nodes_[at].parent) {
    if (nodes_[at].frame.function == function) return nodes_[at].parent;
  }
  return stack;
}

}  // namespace heddle
