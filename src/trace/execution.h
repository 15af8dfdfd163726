// Executions: what a running program wrote, before it is turned into events.
//
// A segment's record is a few words; as events it is 32 bytes for the segment and 32 more for each
// of its accesses, although all of that but the addresses was known before the program ran. Who
// follows every segment of a running program (src/flow) takes the words as they are: the static
// part, a *shape*, is looked at once, and what is left of an execution is which shape, which
// thread and where its words are. The same events in the same order follow from it:
//
//   for each execution: Segment(shape.segment), then for each of the shape's items its event, with
//   the address item.event.address + words[item.base]
//
// Everything that is not the whole execution of such a segment (locks, calls, segments that were
// interrupted, accesses of dynamic size) stays an event.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

using ShapeId = std::uint32_t;  // 0 = none

struct ShapeItem {
  Event event;           // address = what is added to the word; thread = 0
  std::uint32_t base{};  // index of that word in the record: 0 = the header
};

struct SegmentShape {
  SegmentId segment{};
  std::vector<ShapeItem> items;
};

struct Execution {
  ShapeId shape{};      // 0: not an execution; the next `count` events of the batch come here
  std::uint32_t who{};  // the thread, or that count
  const std::uint64_t* words{};

  static Execution of(ShapeId shape, ThreadId thread, const std::uint64_t* words) {
    return {shape, thread, words};
  }
  static Execution events(std::uint32_t count) { return {0, count, nullptr}; }
};

// Executions and events in one order.
struct ExecutionBatch {
  std::span<const Execution> executions;
  std::span<const Event> events;
  std::span<const SegmentShape* const> shapes;  // by ShapeId

  bool empty() const { return executions.empty(); }
};

}  // namespace heddle
