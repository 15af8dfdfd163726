// How FlowMachine follows segments, calls and accesses one by one: activations begin and end, phis
// are taken, branches leave their marks.
#pragma once

#include "flow/machine.h"

#include <algorithm>

namespace heddle {

template <typename Client>
void FlowMachine<Client>::begin_segment(ThreadId id, Thread& thread, const FlowSegment& segment,
                                        SegmentId number, EventOrdinal ordinal) {
  enter_segment(id, thread, segment);
  thread.running = nullptr;
  thread.segment = &segment;
  thread.segment_id = number;
  thread.segment_ordinal = ordinal;
  thread.next_item = 0;
  // A branch happens right after the last access of its segment.
  branch_when_due(id, thread);
}

template <typename Client>
void FlowMachine<Client>::enter_segment(ThreadId id, Thread& thread, const FlowSegment& segment) {
  ++thread.steps;
  bool same_block = false;
  if (segment.enters_function) {
    enter_function(thread, segment);
  } else if (Activation* top = thread.depth > 0 ? &thread.top() : nullptr;
             top != nullptr && top->function == segment.function &&
             top->calls_below <= thread.calls.size() && !top->call.open) {
    same_block = !segment.enters_block && top->block == segment.block;
    if (segment.edge_count != 0) take_phis(id, *top, segment);
    top->block = segment.block;
  } else {
    continue_function(id, thread, segment);
  }
  Activation& frame = thread.top();
  if (!same_block) frame.control = control_of(frame, segment);
}

// The other ends wait until the thread's next segment begins, because accesses of library code may
// still belong to a call.
template <typename Client>
void FlowMachine<Client>::end_segment(ThreadId id, Thread& thread) {
  if (thread.segment == nullptr) return;
  const FlowSegment& segment = *thread.segment;
  thread.segment = nullptr;
  thread.running = nullptr;
  Activation& frame = thread.top();
  switch (segment.end) {
    case SegmentEnd::kFallThrough:
      break;
    case SegmentEnd::kBranch:
      take_branch(id, frame, segment, thread.segment_id, thread.steps, thread.segment_ordinal);
      break;
    case SegmentEnd::kCall: {
      PendingCall& call = frame.call;
      call.open = true;
      call.returned = false;
      call.defines = segment.defines;
      call.callee = segment.callee;
      call.result = Tag();
      call.arguments.resize(segment.argument_count);
      for (std::uint32_t i = 0; i < segment.argument_count; ++i)
        call.arguments[i] = joined(id, frame, programs_.argument(segment.first_argument + i));
      break;
    }
    case SegmentEnd::kReturn: {
      const Tag result = joined(id, frame, segment.from);
      const bool answers = frame.of_pending_call;
      if (--thread.depth > 0 && answers) {
        thread.top().call.returned = true;
        thread.top().call.result = result;
      }
      break;
    }
    case SegmentEnd::kUnwind:
      --thread.depth;
      break;
  }
}

template <typename Client>
[[gnu::always_inline]] inline typename FlowMachine<Client>::Control
FlowMachine<Client>::take_branch(ThreadId id, Activation& frame, const FlowSegment& segment,
                                 SegmentId number, std::uint64_t step, EventOrdinal ordinal) {
  if (segment.block >= frame.mark_count) [[unlikely]] {
    if (segment.block >= FlowPrograms::kMaxBlocks) return {};
    frame.mark_count = segment.block + 1;
    frame.marks.resize(frame.mark_count);
  }
  Control control = frame.control;
  if (!kGlances || segment.from.size() != 0) {
    const Tag condition = joined(id, frame, segment.from);
    control = client_.branch(id, ordinal, number, condition, control);
  }
  frame.marks[segment.block] = {step, control};
  return control;
}

template <typename Client>
typename FlowMachine<Client>::Activation& FlowMachine<Client>::push(Thread& thread,
                                                                    const FlowSegment& segment) {
  if (thread.depth >= kMaxDepth) thread.depth = 0;  // a trace that never returns: start afresh
  if (thread.depth == thread.stack.size()) thread.stack.emplace_back();
  Activation& frame = thread.stack[thread.depth++];
  frame.function = segment.function;
  frame.block = 0;
  frame.of_pending_call = false;
  frame.calls_below = thread.calls.size();
  frame.began = thread.steps;
  frame.call_control = Control();
  frame.control = Control();
  frame.registers_used = segment.registers + 1;
  if (frame.registers.size() < frame.registers_used) frame.registers.resize(frame.registers_used);
  std::fill_n(frame.registers.data(), frame.registers_used, Tag());
  frame.call.open = false;
  return frame;
}

template <typename Client>
void FlowMachine<Client>::enter_function(Thread& thread, const FlowSegment& segment) {
  // A frame whose Enter is gone was left by an exception or a jump.
  while (thread.depth > 0 && thread.top().calls_below > thread.calls.size()) --thread.depth;
  Activation& frame = push(thread, segment);
  if (thread.depth < 2) return;
  Activation& caller = thread.stack[thread.depth - 2];
  frame.call_control = caller.control;
  const PendingCall& call = caller.call;
  // A callback from library code (qsort's comparison) is not the callee, and its parameters come
  // from somewhere unknown.
  if (!call.open || call.returned ||
      (call.callee != 0 && !programs_.calls(call.callee, segment.function_name))) {
    return;
  }
  frame.of_pending_call = true;
  const std::size_t count = std::min<std::size_t>(call.arguments.size(), segment.parameters);
  std::copy_n(call.arguments.begin(), count, frame.registers.begin());
}

// A segment of a function that is not on the stack at all (its beginning was not recorded) gets an
// activation of its own, so that the frames below keep theirs.
template <typename Client>
void FlowMachine<Client>::continue_function(ThreadId id, Thread& thread,
                                            const FlowSegment& segment) {
  std::size_t depth = thread.depth;
  while (depth > 0 && (thread.stack[depth - 1].function != segment.function ||
                       thread.stack[depth - 1].calls_below > thread.calls.size())) {
    --depth;
  }
  if (depth > 0) {
    thread.depth = depth;
  } else {
    push(thread, segment);
  }
  Activation& frame = thread.top();
  finish_call(id, frame);
  if (segment.edge_count != 0) take_phis(id, frame, segment);
  frame.block = segment.block;
}

template <typename Client>
void FlowMachine<Client>::finish_call(ThreadId id, Activation& frame) {
  if (!frame.call.open) return;
  Tag result = frame.call.result;
  if (!frame.call.returned) {
    for (const Tag argument : frame.call.arguments) result = client_.join(id, result, argument);
  }
  frame.registers[frame.call.defines] = result;
  frame.call.open = false;
}

template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::take_phis(ThreadId id, Activation& frame,
                                                                  const FlowSegment& segment) {
  const FlowPrograms::Edge* edge = &programs_.edge(segment.first_edge);
  const FlowPrograms::Edge* const last = edge + segment.edge_count - 1;
  while (edge != last && edge->block != frame.block) ++edge;
  if (edge->phi_count != 0) take_phis(id, frame, *edge);
}

// All phis of a block read the registers as they were on the edge, before any of them is set.
template <typename Client>
void FlowMachine<Client>::take_phis(ThreadId id, Tag* registers, Control control,
                                    const FlowPrograms::Edge& edge) {
  const FlowPrograms::Phi* const phis = &programs_.phi(edge.first_phi);
  const std::uint32_t count = edge.phi_count;
  if (edge.one_by_one) {
    for (std::uint32_t i = 0; i < count; ++i)
      registers[phis[i].defines] = value_of(id, registers, control, phis[i]);
    return;
  }
  if (scratch_.size() < count) scratch_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) scratch_[i] = value_of(id, registers, control, phis[i]);
  for (std::uint32_t i = 0; i < count; ++i) registers[phis[i].defines] = scratch_[i];
}

template <typename Client>
inline typename FlowMachine<Client>::Control FlowMachine<Client>::control_of(
    const Activation& frame, const FlowSegment& segment) const {
  const FlowList parents = segment.parents;
  const std::uint32_t count = parents.size();
  Control control = frame.call_control;
  std::uint64_t latest = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (parents[i] >= frame.mark_count) continue;
    const BranchMark& mark = frame.marks[parents[i]];
    if (mark.when < frame.began || mark.when <= latest) continue;
    latest = mark.when;
    control = mark.control;
  }
  return control;
}

// Items that came to nothing (a copy of no bytes) have no event: they are passed over.
template <typename Client>
bool FlowMachine<Client>::find_item(Thread& thread, SiteId site) {
  const FlowSegment& segment = *thread.segment;
  for (std::uint32_t i = thread.next_item; i < segment.item_count; ++i) {
    if (programs_.item(segment.first_item + i).site != site) continue;
    for (; thread.next_item < i; ++thread.next_item) {
      const FlowItem& nothing = programs_.item(segment.first_item + thread.next_item);
      thread.top().registers[nothing.defines] = Tag();
    }
    return true;
  }
  return false;
}

template <typename Client>
void FlowMachine<Client>::access(Thread& thread, const Event& event, EventOrdinal ordinal) {
  if (thread.segment == nullptr || !find_item(thread, event.site)) {
    library_access(thread, event, ordinal);
    return;
  }
  const FlowItem& item = programs_.item(thread.segment->first_item + thread.next_item++);
  Activation& frame = thread.top();
  const TagList<Tag> address = tags(frame, item.address);
  if (event.kind == EventKind::kRead) {
    frame.registers[item.defines] = client_.load(event, ordinal, address, frame.control);
  } else if (event.kind == EventKind::kWrite) {
    client_.store(event, ordinal, tags(frame, item.value), address, frame.control);
  } else {
    frame.registers[item.defines] =
        client_.update(event, ordinal, tags(frame, item.value), address, frame.control);
  }
  branch_when_due(event.thread, thread);
}

// An access on behalf of a call into code without descriptors: what it reads goes into the call's
// result, what it writes comes from the arguments and from what it read. Without any call (a trace
// without flow) it depends on nothing.
template <typename Client>
void FlowMachine<Client>::library_access(Thread& thread, const Event& event, EventOrdinal ordinal) {
  if (thread.segment != nullptr && thread.segment->end == SegmentEnd::kCall)
    end_segment(event.thread, thread);
  Activation* frame = thread.depth > 0 ? &thread.top() : nullptr;
  const Control control = frame != nullptr ? frame->control : Control();
  PendingCall* call =
      frame != nullptr && frame->call.open && !frame->call.returned ? &frame->call : nullptr;
  if (event.kind == EventKind::kRead) {
    const Tag value = client_.load(event, ordinal, {}, control);
    if (call != nullptr) call->result = client_.join(event.thread, call->result, value);
    return;
  }
  scratch_.clear();
  if (call != nullptr) {
    scratch_.push_back(call->result);
    scratch_.insert(scratch_.end(), call->arguments.begin(), call->arguments.end());
  }
  in_order_.assign(1, static_cast<Register>(scratch_.size()));
  for (Register i = 0; i < scratch_.size(); ++i) in_order_.push_back(i);
  const TagList<Tag> data(scratch_.data(), in_order_.data());
  if (event.kind == EventKind::kWrite) {
    client_.store(event, ordinal, data, {}, control);
  } else {
    const Tag value = client_.update(event, ordinal, data, {}, control);
    if (call != nullptr) call->result = client_.join(event.thread, call->result, value);
  }
}

}  // namespace heddle
