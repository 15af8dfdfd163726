// FlowMachine's way with executions (trace/execution.h); of loops see flow/rounds.h.
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
  const auto take_turn = [&](ThreadId who) {
    if (who == id) return;
    id = who;
    thread = &thread_of(id);
    if constexpr (kGlances) client_.turn(id);
  };
  LiveSegment* const segments = programs_.live(shapes);
  const Execution* const end = executions.data() + executions.size();
  const Execution* execution = executions.data();
  const auto repeat_if_it_does = [&](const LiveSegment& segment) {
    if constexpr (kGlances) {
      const Execution* const next = execution + 1;
      if (next == end || next->shape != execution->shape || !segment.repeats || next->who != id ||
          thread->running == nullptr) {
        return;
      }
      ExecutedRounds rounds(next, end);
      repeat(id, *thread, segments[next->shape], rounds, ordinal, after);
      execution = rounds.next() - 1;
    }
  };
  // Whether a path begins here; then it has been followed up to its last execution.
  const auto follow_path = [&]() __attribute__((always_inline)) {
    if constexpr (kGlances && std::is_empty_v<After>) {
      const Path* const path = find_path(*thread, segments, shapes, execution, end);
      if (path == nullptr) return false;
      follow(id, *thread, *path, segments, execution, end, ordinal);
      execution += path->count - 1;
      ordinal += path->events;
      repeat_if_it_does(segments[execution->shape]);
      return true;
    } else {
      return false;
    }
  };
  for (; execution != end; ++execution) {
    LiveSegment& segment = segments[execution->shape];
    if (!segment.fits) [[unlikely]] {
      if (execution->shape == 0) break;
      const RecordShape& shape = *shapes[execution->shape];
      if (shape.kind != RecordShape::Kind::kSegment) {
        if constexpr (!kGlances) break;
        if (shape.kind == RecordShape::Kind::kLoop) {
          ordinal = loop(shape, *execution, shapes, ordinal, after);
          id = ~0u;  // nobody knows where that has left off
          continue;
        }
        take_turn(execution->who);
        if (follow_path()) continue;
        call(*thread, shape, *execution);
        ++ordinal;
        continue;
      }
      if (!segment.known) compile(execution->shape, shape);
    }
    take_turn(execution->who);
    if (follow_path()) continue;
    expect_next(id, segments, execution, end);
    if (segment.fits) [[likely]] {
      execute(id, *thread, segment, execution->words, ordinal);
    } else {
      execute_slowly(id, *thread, segment, execution->words, ordinal);
    }
    ordinal += segment.events();
    after();
    repeat_if_it_does(segment);
  }
  return {static_cast<std::size_t>(execution - executions.data()), ordinal};
}

// An enter or a leave, of the thread whose turn it is.
template <typename Client>
void FlowMachine<Client>::call(Thread& thread, const RecordShape& shape,
                               const Execution& execution) {
  if constexpr (kGlances) {
    const auto function = static_cast<FunctionId>(shape.id);
    const bool enters = shape.kind == RecordShape::Kind::kEnter;
    if (enters) {
      client_.entered(execution.who, function, execution.site);
    } else {
      client_.left(execution.who, function);
    }
    call(thread, function, enters);
  }
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
  if (batches_++ % kSampledBatches != 0) return;
  for (std::size_t i = kSampled / 2; i < executions.size(); i += kSampled) {
    LiveSegment& segment = segments[executions[i].shape];
    if (!segment.fits) continue;
    sample(segment, executions[i].who,
           [&](const LiveItem& item) { return executions[i].words[item.base]; });
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
    execute_items(id, frame->registers.data(), frame->control, live.all_items(), words, ordinal);
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

template <typename Client>
[[gnu::noinline]] void FlowMachine<Client>::execute_items(ThreadId id, Tag* registers,
                                                          Control control,
                                                          std::span<LiveItem> items,
                                                          const std::uint64_t* words,
                                                          EventOrdinal ordinal) {
  execute_items_here(id, registers, control, items, words, ordinal);
}

template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::execute_items_here(
    ThreadId id, Tag* registers, Control control, std::span<LiveItem> items,
    const std::uint64_t* words, EventOrdinal ordinal) {
  LiveItem* const end = items.data() + items.size();
  for (LiveItem* item = items.data(); item != end; ++item) {
    const Address where = item->offset + words[item->base];
    ++ordinal;
    if constexpr (kGlances) {
      if (item->kind == EventKind::kRead) {
        if (client_.load_at_a_glance(*item, where, id, ordinal, registers[item->defines])) continue;
      } else if (item->kind == EventKind::kWrite) {
        if (client_.store_at_a_glance(*item, where, id, ordinal, registers, control)) continue;
      }
    }
    access_slowly(id, registers, control, *item, words, ordinal);
  }
}

template <typename Client>
Event FlowMachine<Client>::event_of(const LiveItem& item, ThreadId id, const std::uint64_t* words) {
  Event event = item.event;
  event.thread = id;
  event.address = item.offset + words[item.base];
  if (item.size_word != 0) event.size = (words[item.size_word] - 1) & kLargestRange;
  return event;
}

template <typename Client>
void FlowMachine<Client>::access_slowly(ThreadId id, Tag* registers, Control control,
                                        const LiveItem& item, const std::uint64_t* words,
                                        EventOrdinal ordinal) {
  const Event event = event_of(item, id, words);
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
    on(event_of(item, id, words), ++ordinal);
  }
}

}  // namespace heddle
