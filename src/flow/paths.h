// FlowMachine's way with paths: executions of one activation that come one after another again and
// again, as those of a loop with branches in it.
//
// Most segments are small: a block that decides where to go on, with an access or without. What is
// to be done for one of them takes less time than finding it out: which edge the block was entered
// on, which of the branches that it depends on came last. On a path all of that is known before it
// is taken. So once a segment has come often enough, the executions that follow it are put down as
// a path, with what there is to do in each and nothing else; and whenever the same ones follow it
// again, after the same block, that is what is done.
//
// A path may call functions that return before it ends: what an argument is computed from, and what
// a result, is known as well. It ends where the activation that it began in is left, where a
// segment comes again by itself (flow/rounds.h), and before it comes back to where it began.
#pragma once

#include "flow/machine.h"

namespace heddle {

// One that the next executions are. Where there is none, they may become one.
template <typename Client>
[[gnu::always_inline]] inline const Path* FlowMachine<Client>::find_path(
    const Thread& thread, LiveSegment* segments, std::span<const RecordShape* const> shapes,
    const Execution* first, const Execution* end) {
  LiveSegment& segment = segments[first->shape];
  const FlowSegment* const pending = thread.segment;
  std::uint32_t block = 0;
  if (thread.running != nullptr) {
    if (thread.running->function != segment.continues) return nullptr;
    block = thread.running->block;
  } else if (pending == nullptr || pending->end != SegmentEnd::kCall ||
             thread.stack[thread.depth - 1].calls_below > thread.calls.size()) {
    return nullptr;
  }
  const auto left = static_cast<std::size_t>(end - first);
  const std::uint64_t by_thread = first->shape_and_thread() - first->shape;
  for (const Path* path = segment.paths; path != nullptr; path = path->next) {
    if (path->pending != pending || (path->from != block && path->from != Path::kAnyBlock))
      continue;
    const std::size_t count = path->count;
    if (count > left) continue;
    std::size_t same = 1;
    while (same < count && first[same].shape_and_thread() == (by_thread | path->shapes[same]))
      ++same;
    if (same == count) return path;
  }
  if (++segment.heat >= hot_) [[unlikely]] {
    segment.heat = 0;
    learn_path(thread, segments, shapes, first, end);
  }
  return nullptr;
}

template <typename Client>
[[gnu::noinline]] void FlowMachine<Client>::learn_path(const Thread& thread,
                                                       const LiveSegment* segments,
                                                       std::span<const RecordShape* const> shapes,
                                                       const Execution* first,
                                                       const Execution* end) {
  if (client_.choices()) return;
  std::array<ShapeId, Path::kLongest> ids;
  std::size_t count = 0;
  for (const Execution* next = first; count < ids.size(); ++next) {
    // Where it is not known yet what comes next, or somebody else goes on, it may go on otherwise.
    if (next == end) return;
    if (next->shape == 0 || (count != 0 && next->shape == first->shape)) break;
    if (next->who != first->who) return;
    ids[count++] = next->shape;
    if (segments[next->shape].repeats && next + 1 != end && next[1].shape == next->shape) break;
  }
  if (count < 2) return;
  const std::uint32_t block = thread.running != nullptr ? thread.running->block : 0;
  programs_.add_path(thread.segment, block, std::span(ids).first(count), shapes);
}

// The same as execute() and call() for each.
template <typename Client>
void FlowMachine<Client>::follow(ThreadId id, Thread& thread, const Path& path,
                                 const LiveSegment* segments, const Execution* first,
                                 const Execution* end, EventOrdinal ordinal) {
  if (end - first > kAhead + static_cast<std::ptrdiff_t>(path.count)) {
    for (const Execution* next = first; next != first + path.count; ++next) {
      expect(id, segments, next[kAhead]);
      expect_soon(id, segments, next[kSoon]);
    }
  }
  Activation& frame = thread.stack[thread.depth - 1];
  if (frame.mark_count < path.mark_count) {
    frame.mark_count = path.mark_count;
    frame.marks.resize(frame.mark_count);
  }
  std::array<Control, 2 * Path::kMostSteps + 1> controls;
  controls[0] = frame.control;
  Control* known = controls.data() + 1;
  std::array<Tag*, Path::kDeepest> registers_of{frame.registers.data()};
  for (std::size_t i = 1; i < registers_of.size(); ++i)
    registers_of[i] = path_registers_.data() + path.registers[i];
  for (const PathStep& step : path.steps) {
    Tag* const registers = registers_of[step.activation];
    if (step.kind == PathStep::Kind::kStatements) [[likely]] {
      if (step.edge != PathStep::kNoEdge)
        take_phis(id, registers, Control(), programs_.edge(step.edge));
      const Control control = step.control != PathStep::kAsked ? controls[step.control]
                                                               : control_of(frame, *step.segment);
      known[0] = control;
      if (!step.items.empty()) {
        execute_items_here(id, registers, control, step.items, first[step.execution].words,
                           ordinal + step.ordinal);
      }
      if (step.branches) {
        Control decided = control;
        if (step.from.size() != 0) {
          decided = client_.branch(id, ordinal + step.ordinal, step.id,
                                   joined(id, registers, step.from), control);
        }
        known[1] = decided;
        if (step.marks) frame.marks[step.block] = {thread.steps + step.step, decided};
      }
    } else {
      call(id, step, registers, registers_of[std::max<std::size_t>(step.activation, 1) - 1],
           first[step.execution]);
    }
    known += 2;
  }
  frame.control =
      path.last != PathStep::kAsked ? controls[path.last] : control_of(frame, *path.asked);
  frame.block = path.end->block;
  thread.steps += path.step_count;
  thread.running = path.stays_open ? nullptr : &frame;
  thread.segment = path.stays_open ? path.end : nullptr;
  thread.segment_id = path.end_id;
  thread.segment_ordinal = ordinal + path.end_ordinal;
  thread.next_item = path.end->item_count;
}

// The steps that are no statements. `caller`: the registers of the activation below.
template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::call(ThreadId id, const PathStep& step,
                                                             Tag* registers, Tag* caller,
                                                             const Execution& execution) {
  const auto argument = [&](std::uint32_t i) {
    return programs_.argument(step.segment->first_argument + i);
  };
  switch (step.kind) {
    case PathStep::Kind::kStatements:
      break;
    case PathStep::Kind::kEnter:
      client_.entered(id, step.function, execution.site);
      break;
    case PathStep::Kind::kLeave:
      client_.left(id, step.function);
      break;
    case PathStep::Kind::kCall:
      for (std::uint32_t i = 0; i < step.parameters; ++i)
        registers[i] = joined(id, caller, argument(i));
      std::fill(registers + step.parameters, registers + step.registers, Tag());
      break;
    case PathStep::Kind::kReturn:
      caller[step.segment->defines] = joined(id, registers, step.from);
      break;
    case PathStep::Kind::kLibraryCall: {
      Tag result{};
      for (std::uint32_t i = 0; i < step.segment->argument_count; ++i)
        result = client_.join(id, result, joined(id, registers, argument(i)));
      registers[step.segment->defines] = result;
      break;
    }
  }
}

}  // namespace heddle
