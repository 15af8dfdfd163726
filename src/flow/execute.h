// FlowMachine's way with executions (trace/execution.h).
//
// In a loop over an array the same segment comes again and again. What its branches depend on does
// not change from round to round, mostly, so neither does what controls its accesses: once a round
// has decided everything as the one before it did, the next ones only ask whether the branches'
// conditions are still the same (`repeat`).
#pragma once

#include "flow/machine.h"

namespace heddle {

template <typename Client>
template <typename After>
typename FlowMachine<Client>::Progress FlowMachine<Client>::run(
    std::span<const Execution> executions, std::span<const RecordShape* const> shapes,
    EventOrdinal ordinal, After after) {
  Thread* thread = nullptr;
  ThreadId id = ~0u;
  LiveSegment* const segments = programs_.live(shapes);
  const Execution* const end = executions.data() + executions.size();
  const Execution* execution = executions.data();
  for (; execution != end; ++execution) {
    LiveSegment& segment = segments[execution->shape];
    if (!segment.fits) [[unlikely]] {
      if (execution->shape == 0) break;
      const RecordShape& shape = *shapes[execution->shape];
      if (shape.kind != RecordShape::Kind::kSegment) break;
      if (!segment.known) compile(execution->shape, shape);
    }
    if (execution->who != id) {
      id = execution->who;
      thread = &thread_of(id);
      if constexpr (kGlances) client_.turn(id);
    }
    if (end - execution > kAhead) expect(id, segments, execution[kAhead]);
    if (segment.fits) [[likely]] {
      execute(id, *thread, segment, execution->words, ordinal);
    } else {
      execute_slowly(id, *thread, segment, execution->words, ordinal);
    }
    ordinal += segment.events;
    after();
    if constexpr (kGlances) {
      const Execution* const next = execution + 1;
      if (next == end || next->shape != execution->shape || !segment.repeats || next->who != id ||
          thread->running == nullptr) {
        continue;
      }
      execution = repeat(id, *thread, segments, next, end, ordinal, after) - 1;
    }
  }
  return {static_cast<std::size_t>(execution - executions.data()), ordinal};
}

template <typename Client>
void FlowMachine<Client>::compile(ShapeId id, const RecordShape& shape) {
  const std::span<LiveItem> items = programs_.compile(id, shape);
  if constexpr (kGlances) {
    for (LiveItem& item : items) client_.prepare(item);
  }
}

template <typename Client>
void FlowMachine<Client>::sample(std::span<const Execution> executions,
                                 std::span<const RecordShape* const> shapes) {
  LiveSegment* const segments = programs_.live(shapes);
  for (std::size_t i = kSampled / 2; i < executions.size(); i += kSampled) {
    LiveSegment& segment = segments[executions[i].shape];
    if (!segment.fits) continue;
    segment.scattered = false;
    for (LiveItem& item : std::span(segment.items, segment.item_count)) {
      const Address where = item.offset + executions[i].words[item.base];
      item.scattered = where - item.sampled + kFar > 2 * kFar;
      item.sampled = where;
      segment.scattered = segment.scattered || item.scattered;
    }
  }
}

// The same as begin_segment, an access for every item and, where all is done by then, end_segment.
template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::execute(ThreadId id, Thread& thread,
                                                                const LiveSegment& live,
                                                                const std::uint64_t* words,
                                                                EventOrdinal ordinal) {
  const FlowSegment& segment = *live.flow;
  const FlowSegment& first = live.before_count == 0 ? segment : *live.before[0].flow;
  Activation* frame = thread.running;
  if (frame != nullptr && frame->function == live.continues) [[likely]] {
    ++thread.steps;
    if (first.edge_count != 0) take_phis(id, *frame, first);
    if (first.enters_block || frame->block != first.block) {
      frame->block = first.block;
      frame->control = control_of(*frame, first);
    }
  } else {
    if (thread.segment != nullptr) end_segment(id, thread);
    enter_segment(id, thread, first);
    frame = &thread.top();
    thread.running = frame;
  }
  for (std::uint32_t i = 0; i < live.before_count; ++i, ++ordinal) {
    const LiveBefore& before = live.before[i];
    Control decided{};
    if (before.branches)
      decided = take_branch(id, *frame, *before.flow, before.id, thread.steps, ordinal);
    ++thread.steps;
    if (before.next->edge_count != 0) take_phis(id, *frame, *before.next);
    frame->block = before.next->block;
    frame->control = before.controls_next ? decided : control_of(*frame, *before.next);
  }
  if (live.item_count != 0)
    execute_items(id, frame->registers.data(), frame->control, live, words, ordinal);
  if (segment.end == SegmentEnd::kBranch) {
    take_branch(id, *frame, segment, live.id, thread.steps, ordinal);
  } else if (!live.ends_now) {
    thread.running = nullptr;
    thread.segment = &segment;
    thread.segment_id = live.id;
    thread.segment_ordinal = ordinal;
    thread.next_item = segment.item_count;
  }
}

// The rounds that come after the first one.
template <typename Client>
template <typename After>
const Execution* FlowMachine<Client>::repeat(ThreadId id, Thread& thread, LiveSegment* segments,
                                             const Execution* next, const Execution* end,
                                             EventOrdinal& ordinal, After after) {
  const ShapeId shape = next->shape;
  LiveSegment& live = segments[shape];
  Rounds rounds{thread, *thread.running, live};
  do {
    if (live.scattered && end - next > kAhead) expect(id, segments, next[kAhead]);
    if (live.has_phis) take_phis(id, rounds.frame, programs_.edge(live.own_edge));
    if (rounds.stable && decides_as_before(id, rounds, ordinal)) {
      same_round(id, rounds, next->words, ordinal);
    } else {
      settle(rounds);
      round(id, rounds, next->words, ordinal);
    }
    ordinal += live.events;
    ++next;
    after();
  } while (next != end && next->shape == shape && next->who == id && thread.running != nullptr);
  settle(rounds);
  return next;
}

// The same as execute() of a segment that comes after itself and has taken its phis.
template <typename Client>
void FlowMachine<Client>::round(ThreadId id, Rounds& rounds, const std::uint64_t* words,
                                EventOrdinal ordinal) {
  Thread& thread = rounds.thread;
  Activation& frame = rounds.frame;
  const LiveSegment& live = rounds.live;
  bool same = true;
  const auto take = [&](const FlowSegment& segment, SegmentId number, Control& outer) {
    const Control last =
        segment.block < frame.mark_count ? frame.marks[segment.block].control : Control();
    outer = frame.control;
    const Control decided = take_branch(id, frame, segment, number, thread.steps, ordinal);
    same = same && decided == last;
    return decided;
  };
  const FlowSegment& first = live.before_count == 0 ? *live.flow : *live.before[0].flow;
  ++thread.steps;
  frame.control = control_of(frame, first);
  for (std::uint32_t i = 0; i < live.before_count; ++i, ++ordinal) {
    const LiveBefore& before = live.before[i];
    Control decided{};
    if (before.branches) decided = take(*before.flow, before.id, rounds.outer[i]);
    ++thread.steps;
    frame.control = before.controls_next ? decided : control_of(frame, *before.next);
  }
  execute_items(id, frame.registers.data(), frame.control, live, words, ordinal);
  if (live.flow->end == SegmentEnd::kBranch)
    take(*live.flow, live.id, rounds.outer[live.before_count]);
  frame.block = live.flow->block;
  rounds.stable = same;
}

template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::decides_as_before(ThreadId id,
                                                                          const Rounds& rounds,
                                                                          EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  for (std::uint32_t i = 0; i < live.before_count; ++i) {
    const LiveBefore& before = live.before[i];
    if (!before.asks) continue;
    const Tag condition = joined(id, rounds.frame, before.flow->from);
    const Control decided = client_.branch(id, ordinal + i, before.id, condition, rounds.outer[i]);
    if (decided != rounds.frame.marks[before.flow->block].control) return false;
  }
  return true;
}

// What controls its accesses is what controlled the last round's. When the branches were executed
// is put down later, by settle().
template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::same_round(ThreadId id, Rounds& rounds,
                                                                   const std::uint64_t* words,
                                                                   EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  Activation& frame = rounds.frame;
  rounds.thread.steps += live.before_count + 1;
  ordinal += live.before_count;
  execute_items(id, frame.registers.data(), frame.control, live, words, ordinal);
  if (!live.asks) return;
  const Tag condition = joined(id, frame, live.flow->from);
  const Control decided = client_.branch(id, ordinal, live.id, condition, frame.control);
  if (decided == frame.marks[live.flow->block].control) return;
  settle(rounds);
  frame.marks[live.flow->block].control = decided;
  rounds.stable = false;
}

template <typename Client>
void FlowMachine<Client>::settle(Rounds& rounds) {
  if (!rounds.stable) return;
  const LiveSegment& live = rounds.live;
  std::uint64_t step = rounds.thread.steps - live.before_count;
  for (std::uint32_t i = 0; i < live.before_count; ++i, ++step) {
    if (live.before[i].branches) rounds.frame.marks[live.before[i].flow->block].when = step;
  }
  if (live.flow->end == SegmentEnd::kBranch) rounds.frame.marks[live.flow->block].when = step;
}

template <typename Client>
[[gnu::noinline]] void FlowMachine<Client>::execute_items(ThreadId id, Tag* registers,
                                                          Control control, const LiveSegment& live,
                                                          const std::uint64_t* words,
                                                          EventOrdinal ordinal) {
  LiveItem* const end = live.items + live.item_count;
  for (LiveItem* item = live.items; item != end; ++item) {
    const Address where = item->offset + words[item->base];
    ++ordinal;
    if constexpr (kGlances) {
      if (item->kind == EventKind::kRead) {
        if (client_.load_at_a_glance(*item, where, id, ordinal, registers[item->defines])) continue;
      } else if (item->kind == EventKind::kWrite) {
        if (client_.store_at_a_glance(*item, where, id, ordinal, registers, control)) continue;
      }
    }
    access_slowly(id, registers, control, *item, where, ordinal);
  }
}

template <typename Client>
void FlowMachine<Client>::access_slowly(ThreadId id, Tag* registers, Control control,
                                        const LiveItem& item, Address where, EventOrdinal ordinal) {
  Event event = item.event;
  event.thread = id;
  event.address = where;
  const TagList<Tag> address{registers, item.address.numbers()};
  const TagList<Tag> value{registers, item.value.numbers()};
  if (event.kind == EventKind::kRead) {
    registers[item.defines] = client_.load(event, ordinal, address, control);
  } else if (event.kind == EventKind::kWrite) {
    client_.store(event, ordinal, value, address, control);
  } else {
    registers[item.defines] = client_.update(event, ordinal, value, address, control);
  }
}

// A segment that the catalog does not have, or whose items are others there.
template <typename Client>
void FlowMachine<Client>::execute_slowly(ThreadId id, Thread& thread, const LiveSegment& segment,
                                         const std::uint64_t* words, EventOrdinal ordinal) {
  for (const LiveBefore& before : std::span(segment.before, segment.before_count))
    begin_segment(id, thread, before.id, ordinal++);
  begin_segment(id, thread, segment.id, ordinal);
  for (const LiveItem& item : std::span(segment.items, segment.item_count)) {
    Event event = item.event;
    event.thread = id;
    event.address += words[item.base];
    on(event, ++ordinal);
  }
}

}  // namespace heddle
