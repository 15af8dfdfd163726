// The stream: what the runtime writes into the ring of blocks, next to the words of instrumented
// code (abi/abi.h).
//
// The problem. Instrumented code appends words at tls.cursor without a lock and without a time
// stamp. That is sound because of one invariant:
//
//   only the thread that holds the baton has a cursor.
//
// Every other thread has cursor > limit, so that its next segment enters __heddle_refill, which
// waits for the baton (sched.h). The scheduler therefore brackets every hand-over:
//
//   holder:     rec_give();  …pass the baton on…            from here on it must not call rec_event
//   new holder: …receives the baton…  rec_take(own id);     writes HEDDLE_REC_SWITCH if needed
//
// and everything between rec_take and rec_give is in the one total order of the run. rec_event and
// its kin may be called by the holder only. (Before threads exist, the only thread is the holder.)
//
// States. A process is
//   dormant     HEDDLE_OPTIONS is not in its environment, or it is privileged (AT_SECURE): neither
//               recorded nor scheduled; interceptors pass straight on to the real function;
//   controlled  scheduled; recorded unless level=off, or nobody takes the blocks.
// Writers need not care: without a consumer the words go to a scratch block.
#pragma once

#include "abi/abi.h"
#include "runtime/options.h"
#include "trace/event.h"

#include <stddef.h>
#include <stdint.h>

namespace heddle::rt {

// Nothing of the runtime may act while this is true: the process runs as if natively. Cheap; every
// interceptor asks it first.
bool dormant();

// Calls from inside the runtime, and from the libc functions it calls, are not the program's: an
// interceptor that finds inside() true passes straight on and records nothing.
extern constinit thread_local int t_inside __attribute__((tls_model("initial-exec")));
inline bool inside() {
  return t_inside != 0;
}
struct Inside {
  Inside() { ++t_inside; }
  ~Inside() { --t_inside; }
};
inline bool passive() {
  return dormant() || inside();
}

// ---- records: the holder of the baton only --------------------------------------------------

// An event of trace/event.h. `small` is Event::size (accesses, I/O) or unused; `pc` is the return
// address into the caller of the intercepted function: the collector makes the site of it.
void rec_event(EventKind kind, LockMode mode, OpOutcome outcome, uint32_t small, uint64_t address,
               uint64_t value, const void* pc);

inline void rec_sync(EventKind kind, const volatile void* object, uint64_t value, const void* pc,
                     OpOutcome outcome = OpOutcome::kOk) {
  rec_event(kind, LockMode::kExclusive, outcome, 0, reinterpret_cast<uint64_t>(object), value, pc);
}

// Scheduling decision `point` (a running number) chose `thread`.
void rec_decision(uint64_t point, ThreadId thread);

enum class TextKind : uint32_t {
  kThreadName = 1,  // of a thread
  kMark = 2,        // the user's
  kAssertion = 3,   // of the run's outcome
  kOutcome = 4,     // explains the outcome: what a deadlock consists of, say
  kNote = 5,        // for the one who reads the trace: something could not be controlled
};
void rec_text(TextKind kind, const char* text, size_t length);
void rec_thread_name(ThreadId thread, const char* name);  // cut at about 1,500 bytes

// A native call stack of `thread`, innermost frame first.
void rec_stack(ThreadId thread, const void* const* frames, size_t count);  // cut at 200 frames

// Collects the caller's own native stack, without allocating; returns the number of frames.
size_t native_stack(const void** frames, size_t capacity);

// The translation units that are loaded, for those who set their site flags. Only the holder may
// walk them.
size_t unit_count();
const heddle_unit* unit_at(size_t index);

// ---- hand-over ------------------------------------------------------------------------------

void rec_give();                 // the caller is about to pass the baton on
void rec_take(ThreadId thread);  // the caller, `thread`, has just received it

// The same for a holder that sleeps in the kernel and cannot give (the watchdog's business). First
// rec_fence_holder, which makes sure that the holder's next segment takes the slow path; then look
// whether it still sleeps; only then rec_seize, after which the baton may go to another. Never
// while rec_stalled: the holder then waits for the collector, on behalf of everybody.
void rec_fence_holder();
void rec_seize();
bool rec_stalled();

// The thread whose records are being written: the last one that took.
ThreadId rec_thread();

// ---- the end --------------------------------------------------------------------------------

// Submits what is written so far, also of a block that is not full.
void rec_flush();

// Writes the run's last event, submits everything, and waits until the collector has taken it (or
// is gone). Later records are dropped. Safe in a signal handler. The first call wins. May be
// called without the baton when the process is about to die (crash, deadlock seen by a watchdog).
void rec_finish(RunEnd end, uint64_t value, const char* text, const void* pc = nullptr);
bool rec_finished();

// In the child of a fork, when it is single-threaded: a new region, a new trace, thread 0.
void rec_after_fork_in_child();

// ---- signals --------------------------------------------------------------------------------
//
// Handlers of asynchronous signals run at safe points: the runtime installs its own, which notes
// the signal and closes the thread's limit, so that the next segment or interceptor delivers it.
// A thread that is out of the game (blocked in the kernel) has no safe point ahead: its handler
// runs at once, after the thread has taken the baton. intercept_*.cc call this after every
// operation that blocked and before they return to the program.
void deliver_pending_signals();

}  // namespace heddle::rt
