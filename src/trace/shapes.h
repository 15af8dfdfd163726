// Inside a chunk of events: shapes and predictions.
//
// The problem: a program makes 10⁸ accesses a second and each is 32 bytes as an Event. But an
// access is nearly always what it was the last time control came this way: the same site (hence
// kind, size and order) after the same predecessor, at an address that is a fixed step from its
// last one or a fixed distance from an access just before it.
//
// So a chunk keeps *shapes*: all of an event but its address (and for some kinds its value), one
// per thread and site. A shape remembers which two shapes followed it last in its thread, and how
// its next address is to be guessed:
//
//     base 0      its own last address + offset                 (a loop over an array: the stride)
//     base 1 … 4  address of the thread's k-th last access + offset   (fields of one object)
//
// A stretch of events for which both guesses hold costs one byte however long it is. An event for
// which they do not hold names its shape, or its address as a difference, or both. Changing how a
// shape guesses is a decision of the encoder, written into the stream; the decoder only obeys. Any
// strategy of the encoder is therefore readable, and the decoder has no heuristics to keep in step.
//
// The Segment event of the flow level defines, the first time in a chunk, the shapes of all
// accesses of its descriptor at once, already linked in their order: from then on an execution of
// the segment is a single predicted stretch. Interrupting it is nothing special: a thread's place
// among its shapes is kept while another thread runs.
//
// A chunk is self-contained (given the catalog before it): shapes and predictions start empty. All
// numbers below are part of the file format, docs/trace-format.md.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

namespace heddle {

// The streams that a chunk's payload consists of.
enum Stream : std::uint8_t {
  kOps = 0,          // one byte per op, and the counts of long stretches
  kIndices = 1,      // shapes named explicitly
  kAddresses = 2,    // differences, zigzag
  kValues = 3,       // differences, zigzag
  kDefinitions = 4,  // shapes, threads, stamps
  kStreams = 5,
};

// An op below kFirstSpecial is an event: which shape (2 bits), how its address is given (3 bits),
// how many predicted events follow it (3 bits; kManyFollow: a varint with the rest).
enum class ShapeCode : std::uint8_t { kNext = 0, kOther = 1, kNamed = 2 };
enum class AddressCode : std::uint8_t {
  kPredicted = 0,
  kFromLast = 1,      // last address of the shape + difference
  kFromPrevious = 2,  // address of the thread's last access + difference
  kStride = 3,        // as kFromLast, and guess so from now on
  kRelative = 4,      // … 7: from the thread's 1st … 4th last access, and guess so from now on
};
inline constexpr std::uint8_t kManyFollow = 7;

// Special ops.
inline constexpr std::uint8_t kFirstSpecial = 0xc0;  // + slot: a run of that thread begins
inline constexpr std::uint8_t kDirectSlots = 48;
inline constexpr std::uint8_t kSwitchOp = 0xf0;      // slot in the definitions
inline constexpr std::uint8_t kThreadOp = 0xf1;      // a new slot; its thread in the definitions
inline constexpr std::uint8_t kGapOp = 0xf2;         // the next run's stamp is this much later
inline constexpr std::uint8_t kShapeOp = 0xf3;       // a new shape, to be the current one's next
inline constexpr std::uint8_t kFirstUnknown = 0xf4;  // varint length, then that many bytes to skip

// Second byte of a shape's definition.
enum ShapeField : std::uint8_t {
  kVaryingValue = 1,
  kHasValue = 2,
  kOrdered = 4,     // three bytes follow: order, mode, outcome
  kFixedValue = 8,  // a varint follows
  kKnownFields = 15,
};

inline constexpr std::size_t kMaxShapes = 1u << 16;       // in a chunk
inline constexpr std::size_t kMaxPrimedItems = 1u << 12;  // longer segments define nothing ahead
inline constexpr unsigned kHistory = 4;

struct alignas(64) Shape {
  Event event;               // `address` is its last one; `value` its only or its last one
  std::uint64_t offset = 0;  // of the guess
  std::uint32_t next[2] = {0, 0};
  std::uint8_t base = 0;     // of the guess
  std::uint8_t varying = 0;  // each event has a value in the stream
  std::uint8_t access = 0;   // 1: enters the thread's history
  std::uint8_t deliver = 1;  // 0: of a kind that this version does not know, or no event at all
};
static_assert(sizeof(Shape) == 64);

// What a thread carries along within a chunk.
struct StreamPlace {
  std::uint32_t shape = 0;  // of its last event
  std::uint32_t count = 0;  // accesses so far, modulo 2³²
  Address history[kHistory] = {0, 0, 0, 0};
};

constexpr bool is_known(EventKind kind) {
  const auto k = static_cast<unsigned>(kind);
  return (k >= 1 && k <= 4) || (k >= 10 && k <= 23) || (k >= 30 && k <= 33) || k == 40 || k == 41 ||
         (k >= 50 && k <= 53) || k == 60 || k == 61 || (k >= 70 && k <= 73);
}

// Kinds whose value differs from event to event; the others' is part of their shape.
constexpr bool has_varying_value(const Event& event) {
  return (event.has_value != 0 && is_access(event.kind)) || event.kind == EventKind::kAlloc ||
         event.kind == EventKind::kFree || event.kind == EventKind::kWait;
}

// What an event (of a known kind) refers to that does not exist; null when all is well.
const char* bad_reference(const Event& event, const Catalog& catalog);

// Appends the shape of `event`, which is of a known kind and refers to what exists, and, when it is
// a Segment, the shapes of its items behind it. May exceed kMaxShapes by kMaxPrimedItems.
void append_shapes(std::vector<Shape>& shapes, const Event& event, const Catalog& catalog);

}  // namespace heddle
