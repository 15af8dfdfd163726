// Executions: what a running program wrote, before it is turned into events.
//
// The record of a segment is a few words; as events it is 32 bytes for each of its accesses,
// although all of that but the addresses was known before the program ran. Who follows a running
// program takes the words as they are: the static part, a *shape*, is looked at once, and what is
// left of an execution is which shape, which thread and where its words are. The events that it
// stands for, in their order:
//
//   segment  at the flow level Segment(s) for each s of shape.before, and Segment(shape.id); then
//            for each item its event, with the address item.event.address + words[item.base]
//   enter    Enter(shape.id)
//   leave    Leave(shape.id)
//   call     of a function that does nothing but one segment: Enter(shape.id), its accesses, Leave
//   joined   segments and such calls, one after the other
//   loop     its accesses, round by round (trace/loop_walk.h), or those of some rounds; at the flow
//            level the segments that shape.parts says, as far as they have accesses in a round
//
// Calls of which an execution has no access are not made.
//
// An item may leave its size to the record (item.size_word). Everything that is
// not the whole execution of such a shape (locks, segments that were interrupted, accesses to no
// bytes at all or to more than an event can tell) stays an event.
#pragma once

#include "abi/abi.h"
#include "trace/event.h"

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

using ShapeId = std::uint32_t;  // 0 = none

struct ShapeItem {
  Event event;           // address = what is added to the word; thread = 0
  std::uint32_t base{};  // index of that word in the record: 0 = the header
  // The word that has the size, plus one; 0: event.size has it.
  std::uint32_t size_word{};
};

// How an access of a loop gets on from round to round. Its first address is that of any item.
struct LoopStep {
  std::int64_t distance{};  // constant …
  std::uint16_t word{};     // … or this word of the record, if it is not 0 …
  bool gathered{};          // … or its word is another one in every round
  bool operator==(const LoopStep&) const = default;
};

// A call that stands in a joined record: of a function that does nothing but one segment.
struct ShapeCall {
  std::uint32_t function{};
  SiteId site{};                 // where it was called
  std::uint32_t object{};        // the word with the object; 0: none
  std::uint32_t begin{}, end{};  // its items; there is at least one

  // A bit for each of them.
  std::uint32_t items() const { return ~std::uint32_t{0} >> (32 - (end - begin)) << begin; }
};

// A segment of every round of a loop. It has a shape of its own, of a record that consists of the
// loop's moving words in that round.
struct LoopPart {
  ShapeId shape{};
  std::uint32_t begin{}, end{};  // its items; there is at least one
};

// A word that is another one in every round of a loop; items that move together share it.
struct LoopWord {
  std::uint32_t base{};  // in the record, in the first round …
  LoopStep step;         // … and how it gets on
  bool operator==(const LoopWord&) const = default;
};

struct RecordShape {
  enum class Kind : std::uint8_t { kSegment, kEnter, kLeave, kCall, kJoined, kLoop };

  Kind kind{};
  bool has_object{};                  // an enter or a call whose word 2 is the object
  std::uint8_t words{};               // of its record, behind the header
  std::uint32_t id{};                 // segment or function
  std::uint32_t always{};             // items of a loop that happen in the last round, too
  std::uint16_t round_words{};        // of a loop: words that every round adds to its record …
  std::uint16_t last_words{};         // … and that the last one does
  std::vector<std::uint32_t> before;  // segments without accesses that a segment's record implies
  std::vector<ShapeItem> items;       // of a segment, a call, a joined record or a loop
  std::vector<ShapeCall> calls;       // of a joined record, in order
  std::vector<LoopStep> steps;        // of a loop; one for each item
  std::vector<LoopPart> parts;        // of a loop; none: it is not known what they are
  std::vector<LoopWord> moving;       // of a loop with parts
};

struct Execution {
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};
  static constexpr std::size_t kMostBits = 32;

  ShapeId shape{};        // 0: not an execution; the next `who` events of the batch come here
  std::uint32_t who{};    // the thread, or that count
  SiteId site{};          // enter, call: where it was called; loop: see some_rounds
  std::uint32_t items{};  // which of its shape's (of a loop, in all rounds), a bit each
  const std::uint64_t* words{};

  static Execution of(ShapeId shape, ThreadId thread, const std::uint64_t* words, SiteId site = 0) {
    return {shape, thread, site, kAll, words};
  }
  // Of a loop that gathers, `count` rounds from the one with number `first` on; and which items.
  static Execution some_rounds(ShapeId shape, ThreadId thread, const std::uint64_t* words,
                               std::uint32_t items, std::uint64_t first, std::uint64_t count) {
    static_assert(HEDDLE_BLOCK_WORDS < 1u << 16);
    return {shape, thread, static_cast<SiteId>(first << 16 | count), items, words};
  }
  std::uint64_t first_round() const { return site >> 16; }
  std::uint64_t round_count() const { return site & 0xffff; }  // 0: all
  static Execution events(std::uint32_t count) { return {0, count, 0, 0, nullptr}; }

  // In one number, for comparisons.
  std::uint64_t shape_and_thread() const { return std::uint64_t{who} << 32 | shape; }

  // Only what has no more than kMostBits items can lack some of them.
  bool has(std::size_t item) const { return items == kAll || (items >> item & 1) != 0; }
  std::size_t items_of(const RecordShape& of) const {
    return items == kAll ? of.items.size() : static_cast<std::size_t>(std::popcount(items));
  }
  bool makes(const ShapeCall& call) const { return items == kAll || (items & call.items()) != 0; }
};

// Executions and events in one order.
struct ExecutionBatch {
  std::span<const Execution> executions;
  std::span<const Event> events;
  std::span<const RecordShape* const> shapes;  // by ShapeId
  bool flow{};                                 // whether there are Segment events

  bool empty() const { return executions.empty(); }
};

constexpr Address address_of(const ShapeItem& item, const std::uint64_t* words) {
  return item.event.address + words[item.base];
}

constexpr std::uint32_t size_of(const ShapeItem& item, const std::uint64_t* words) {
  return item.size_word == 0 ? item.event.size
                             : static_cast<std::uint32_t>(words[item.size_word] - 1);
}

inline Event segment_of(std::uint32_t segment, ThreadId thread) {
  Event event;
  event.kind = EventKind::kSegment;
  event.thread = thread;
  event.value = segment;
  return event;
}

inline Event call_event(EventKind kind, const Execution& execution, std::uint32_t function) {
  Event event;
  event.kind = kind;
  event.thread = execution.who;
  event.value = function;
  return event;
}
// The Enter of an enter or a call, and the Leave of a leave or a call.
inline Event enter_of(const RecordShape& shape, const Execution& execution) {
  Event event = call_event(EventKind::kEnter, execution, shape.id);
  event.site = execution.site;
  event.address = shape.has_object ? execution.words[2] : 0;
  return event;
}
inline Event leave_of(const RecordShape& shape, const Execution& execution) {
  return call_event(EventKind::kLeave, execution, shape.id);
}
// Those of a call of a joined record.
inline Event enter_of(const ShapeCall& call, const Execution& execution) {
  Event event = call_event(EventKind::kEnter, execution, call.function);
  event.site = call.site;
  event.address = call.object != 0 ? execution.words[call.object] : 0;
  return event;
}
inline Event leave_of(const ShapeCall& call, const Execution& execution) {
  return call_event(EventKind::kLeave, execution, call.function);
}

// The items of an execution that is no loop, with the calls of a joined one around them, in order:
// calls `enter(const ShapeCall&)`, `access(std::size_t item)` and `leave(const ShapeCall&)`.
template <typename Enter, typename Access, typename Leave>
void walk_items(const RecordShape& shape, const Execution& execution, Enter enter, Access access,
                Leave leave) {
  auto call = shape.calls.begin();
  for (std::size_t i = 0; i < shape.items.size(); ++i) {
    const bool called = call != shape.calls.end() && i >= call->begin && execution.makes(*call);
    if (called && i == call->begin) enter(*call);
    if (execution.has(i)) access(i);
    if (called && i + 1 == call->end) leave(*call);
    if (call != shape.calls.end() && i + 1 == call->end) ++call;
  }
}

}  // namespace heddle
