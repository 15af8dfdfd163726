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
// a result, is known as well, so that values need not be handed from register to register
// (flow/path_steps.h). It ends where the activation that it began in is left, where a
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
    const std::size_t count = path->known;
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
  if (frame.registers.size() < path.slots) frame.registers.resize(path.slots);
  Tag* const slots = frame.registers.data();
  std::array<Control, Path::kMostControls> controls;
  controls[0] = frame.control;
  for (const PathOp& op : path.ops) {
    switch (op.kind) {
      case PathOp::Kind::kRead:
      case PathOp::Kind::kWrite:
      case PathOp::Kind::kUpdate: {
        LiveItem& item = *op.item;
        const Address where = item.offset + first[op.execution].words[item.base];
        const EventOrdinal now = ordinal + op.ordinal;
        if (op.kind == PathOp::Kind::kRead) {
          if (client_.load_at_a_glance(item, where, id, now, slots[item.defines])) break;
        } else if (op.kind == PathOp::Kind::kWrite) {
          if (client_.store_at_a_glance(item, where, id, now, slots, controls[op.control])) break;
        }
        access_slowly(id, slots, controls[op.control], item, first[op.execution].words, now);
        break;
      }
      case PathOp::Kind::kBranch:
        controls[op.decides] = client_.branch(id, ordinal + op.ordinal, op.id,
                                              joined(id, slots, op.from), controls[op.control]);
        break;
      case PathOp::Kind::kAskControl:
        controls[op.decides] = control_of(frame, *op.segment);
        break;
      case PathOp::Kind::kEnter:
        client_.entered(id, op.id, first[op.execution].site);
        break;
      case PathOp::Kind::kLeave:
        client_.left(id, op.id);
        break;
      case PathOp::Kind::kJoin:
        slots[op.id] = joined(id, slots, op.from);
        break;
    }
  }
  for (const PathMark& mark : path.marks)
    frame.marks[mark.block] = {thread.steps + mark.step, controls[mark.control]};
  frame.control = path.last != Path::kAsked ? controls[path.last] : control_of(frame, *path.asked);
  frame.block = path.end->block;
  thread.steps += path.step_count;
  thread.running = path.stays_open ? nullptr : &frame;
  thread.segment = path.stays_open ? path.end : nullptr;
  thread.segment_id = path.end_id;
  thread.segment_ordinal = ordinal + path.end_ordinal;
  thread.next_item = path.end->item_count;
}

}  // namespace heddle
