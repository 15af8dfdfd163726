// Events: what happened, one dynamic step at a time.
//
// An Event is 32 bytes and means the same whether it was decoded from a binary trace, parsed from
// the text notation, imported from RAPID's STD text or handed over live by the collector. Events
// are delivered in one total order that is consistent with each thread's own order and with every
// order that was recorded between threads. An event's ordinal in that order (0, 1, 2, …) is its id.
//
// Conventions that keep detectors small:
//   - An operation that can fail or time out (try-lock, timed wait) is one event at the moment its
//     outcome is known; `outcome` says which. A failed Acquire acquires nothing.
//   - A condition wait is three events: Release(mutex), then at wake-up Wait(cond), then
//     Acquire(mutex). Lock sets therefore need no special case for conditions.
//   - memcpy(d, s, n) is Read(s, n) followed by Write(d, n). realloc is Free followed by Alloc.
//   - A compare-exchange that failed is a Read with its failure order; one that succeeded is an
//   Rmw.
//   - Non-atomic accesses have order == MemoryOrder::kPlain.
//   - At the flow level a Segment event comes right before the accesses of that execution of the
//     segment; they are its access items, in the descriptor's order (trace/descriptor.h).
#pragma once

#include <cstdint>
#include <limits>

namespace heddle {

using ThreadId = std::uint32_t;    // dense, 0 = the main thread; never re-used within a trace
using SiteId = std::uint32_t;      // index into Catalog::sites, 0 = unknown
using FunctionId = std::uint32_t;  // index into Catalog::functions, 0 = unknown
using SegmentId = std::uint32_t;   // index into Catalog::segments, 0 = none
using StringId = std::uint32_t;    // index into Catalog::strings, 0 = the empty string
using Address = std::uint64_t;
using EventOrdinal = std::uint64_t;

inline constexpr EventOrdinal kNoEvent = std::numeric_limits<EventOrdinal>::max();

// The numbers are part of the file format (docs/trace-format.md): append, never renumber.
enum class EventKind : std::uint8_t {
  // Memory. address, size, order; value when has_value.
  kRead = 1,
  kWrite = 2,
  kRmw = 3,
  kFence = 4,  // order only

  // Locks. address = the lock.
  kAcquire = 10,  // mode, outcome
  kRelease = 11,  // mode

  // Condition variables. address = the condition; value = the mutex (Wait only).
  kWait = 12,  // at wake-up; outcome kTimedOut when no signal came
  kSignal = 13,
  kBroadcast = 14,

  // Semaphores. address = the semaphore.
  kSemPost = 15,
  kSemWait = 16,  // when it was taken, or failed (outcome)

  // Barriers. address = the barrier. Every arrival of a round comes before every departure.
  kBarrierArrive = 17,
  kBarrierLeave = 18,

  // One-time initialisation: pthread_once, call_once, guards of function statics. address = the
  // flag.
  kOnceBegin = 19,  // this thread runs the initialiser
  kOnceEnd = 20,    // the initialiser has finished
  kOncePass = 21,   // found it done by somebody

  // Order that a library announced (__tsan_release and kin). address = the object.
  kOrderRelease = 22,
  kOrderAcquire = 23,

  // Threads. value = the other thread's ThreadId.
  kFork = 30,
  kJoin = 31,
  kThreadBegin = 32,  // first event of a thread; value = the parent
  kThreadEnd = 33,

  // Memory blocks. address; value = size in bytes. Free has value 0 when the size is unknown.
  kAlloc = 40,
  kFree = 41,

  // Calls and units.
  kEnter = 50,      // value = FunctionId; address = `this` or 0; site = the call's site if known
  kLeave = 51,      // value = FunctionId
  kUnitBegin = 52,  // a declared transaction; value = StringId of its name or 0. They nest.
  kUnitEnd = 53,    // value as for kUnitBegin

  // Flow.
  kSegment = 60,  // value = SegmentId
  kBranch = 61,   // a branch without descriptors (text notation); value = 1 taken, 0 not

  // The outside.
  kIoRead = 70,  // address = identity of the file object; size = bytes
  kIoWrite = 71,
  kMark = 72,     // the user's; value = StringId
  kOutcome = 73,  // the run's last event: size = RunEnd, value = status or signal, address =
                  // StringId of a text
};

enum class MemoryOrder : std::uint8_t {
  kPlain = 0,
  kRelaxed = 1,
  kConsume = 2,
  kAcquire = 3,
  kRelease = 4,
  kAcqRel = 5,
  kSeqCst = 6,
};

enum class LockMode : std::uint8_t { kExclusive = 0, kShared = 1 };

enum class OpOutcome : std::uint8_t { kOk = 0, kFailed = 1, kTimedOut = 2 };

// How the run ended (Event::size of kOutcome).
enum class RunEnd : std::uint32_t {
  kExit = 0,       // value = exit status
  kSignal = 1,     // value = signal number
  kAssertion = 2,  // address = StringId of the assertion's text; value = signal number
  kHang = 3,       // no progress within the time limit
  kDeadlock = 4,   // every thread waits for another
  kLost = 5,       // the recording ended before the run did (killed, disk full)
};

struct Event {
  EventKind kind{};
  MemoryOrder order{MemoryOrder::kPlain};
  LockMode mode{LockMode::kExclusive};
  OpOutcome outcome{OpOutcome::kOk};
  ThreadId thread{};
  SiteId site{};
  std::uint32_t size : 31 {};      // bytes; longer ranges are split by the producer
  std::uint32_t has_value : 1 {};  // for accesses: `value` holds the value read or written
  Address address{};
  std::uint64_t value{};

  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 32);

constexpr bool is_access(EventKind kind) {
  return kind >= EventKind::kRead && kind <= EventKind::kRmw;
}
constexpr bool is_read(EventKind kind) {
  return kind == EventKind::kRead || kind == EventKind::kRmw;
}
constexpr bool is_write(EventKind kind) {
  return kind == EventKind::kWrite || kind == EventKind::kRmw;
}

}  // namespace heddle
