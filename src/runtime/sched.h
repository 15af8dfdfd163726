// Overview of scheduling.
//
// The problem. A concurrent program's behaviour depends on who runs when, and the kernel does not
// say. Heddle takes that choice away from it: of all the threads of the process, one runs at a
// time, and which one is decided here, from a seed. Then the order of all events is exact and costs
// nothing to record, and the same seed gives the same run.
//
// The baton. One thread holds the baton; it runs the program's code. Every other thread that the
// runtime knows is in one of these states:
//
//   ready     could run, waits for its turn (asleep on its own futex word `Thread::turn`)
//   blocked   waits for an object (a lock's address, a thread's end, a descriptor …), perhaps with
//   a
//             deadline of the virtual clock; becomes ready by sched_wake, by the deadline, by
//             cancellation or by a signal
//   outside   left the game: it is in a system call that may sleep for as long as it likes. When it
//             comes back it queues like everybody else
//   dead      said its last word; its number is never used again
//
// Invariants, in the order in which they matter:
//
//   1. Only the holder changes what the program can see. Only the holder calls rec_*.
//   2. A thread gives the baton away only inside sched_* functions: at a scheduling point, when it
//      blocks, leaves or ends. (The exception is the watchdog, see below.)
//   3. A scheduling point stands *before* the operation that it announces, so that the chosen
//   thread
//      can still get in between.
//   4. No decision depends on an address, a kernel thread id, or the time: candidates are kept in
//   the
//      order in which they became ready, waiters in the order in which they arrived, and every
//      choice is the strategy's (strategy.h), which has a generator of its own.
//   5. The program's objects keep their own meaning: a lock is taken by the C library's own trylock
//      and released by its own unlock; we only decide who tries. Waiting is ours. That is why
//      recursive, error-checking, robust and statically initialised objects need no table, and why
//      a thread the runtime does not know (raw clone) still excludes ours.
//
// The default schedule. Without a strategy's wish, the holder goes on until it blocks, ends or
// yields, and then the one that has been ready for longest runs; a wake-up wakes the one that waits
// for longest. A *schedule* is the list of deviations from that rule, each with its position
// (thread, step): see schedule.h. Steps count, per thread, the moments at which there was something
// to decide; they do not depend on the recording level.
//
// Fairness. Scheduling points at the same place and object, again and again, are a spin: after
// kSpinLimit of them the thread loses its turn, as after sched_yield. So does a thread that has had
// kSlicePoints points without a switch. A thread that loses its turn while nobody else is ready
// moves the virtual clock by a little, so that the sleeper it waits for wakes at last.
//
// The clock. Virtual by default (clock.h): it moves when it is read, and by leaps when every thread
// waits: to the earliest deadline. real_time=1 leaves all of that to the kernel.
//
// When nobody is ready. The last thread that blocks keeps the light on (sched_idle.cc): it fires
// the earliest deadline; failing that it sleeps in poll() on the descriptors that blocked threads
// wait for, or until somebody comes back from outside. If there is neither deadline, descriptor nor
// anybody outside, it is a deadlock, and the run ends as one.
//
// The watchdog (watchdog.cc) is a thread that is not in the game, nor known to the C library. It is
// the net for system calls and locks that nobody intercepted: a holder that sleeps in the kernel
// for some milliseconds loses the baton and counts as outside; it notices at its next sched_* call
// or segment. That costs determinism, so it says so once. It also ends a run after `timeout`
// seconds.
//
// Locking. Counters that only the holder touches need no lock. The rest (states, queues, the baton)
// is under one futex lock, held for some tens of instructions, never across the program's code.
#pragma once

#include "abi/abi.h"
#include "runtime/record.h"

#include <stddef.h>
#include <stdint.h>

namespace heddle::rt {

struct Thread;  // sched_thread.h

// What stands before a scheduling point. The numbers are part of the schedule file.
enum class PointKind : uint8_t {
  kAccess = 1,  // a site whose flag is set: __heddle_point
  kAtomic = 2,  // an atomic or volatile access: __heddle_point
  kLock = 3,    // mutex, rwlock, spin lock, stdio lock
  kTryLock = 4,
  kUnlock = 5,
  kCondWait = 6,
  kCondSignal = 7,
  kSemWait = 8,
  kSemPost = 9,
  kBarrier = 10,
  kOnce = 11,
  kCreate = 12,
  kJoin = 13,
  kThreadEnd = 14,
  kYield = 15,  // sched_yield and kin: loses its turn
  kSleep = 16,
  kFutex = 17,
  kSyscall = 18,  // may block in the kernel
  kWake = 19,     // not a point: which waiter to wake
  kStart = 20,    // a thread's first turn
  kMemory = 21,   // a fence, or a range operation of libc on flagged memory
};

// ---- life ---------------------------------------------------------------------------------------

// From the runtime's constructor, before any other sched_ function: the caller is thread 0 and has
// the baton. Calls rec_take(0).
void sched_init();

// No switch from now on: the caller keeps the baton for ever. For those who write the last word.
void sched_end();

// The calling thread; nullptr when the runtime does not know it.
Thread* sched_self();
ThreadId sched_id(const Thread* thread);
bool sched_holds();  // the calling thread holds the baton

// ---- the holder -----------------------------------------------------------------------------

// A scheduling point before an operation on `object`. May switch; on return the caller holds the
// baton. Takes it first when the caller is in the game without it (the watchdog took it). `pc` is
// the place in the program: a return address, or the address of a site's flag.
void sched_point(PointKind kind, const volatile void* object, const void* pc);

// The same when nobody needs to be asked: counts the point and returns true. Returns false, and has
// done nothing, when sched_point might switch: __heddle_point must close its record before that.
bool sched_point_passes(PointKind kind, const volatile void* object, const void* pc);

// Called by __heddle_refill when a block is full, or when plain loops have taken as long as filling
// several: code without scheduling points spins too. Switches only when the caller has passed no
// point for a long while. Not a step.
void sched_tick(uint64_t blocks);

// Waits until the caller has the baton; on return it has. For a thread that runs code without it:
// the segment of a thread whose cursor is closed, a signal handler, a thread back from the kernel.
// Does nothing for the holder and for threads that are not in the game.
void sched_need_baton();

enum class WakeReason : uint8_t { kWoken, kTimedOut, kCancelled, kSignal };

constexpr uint64_t kNoDeadline = UINT64_MAX;

// Blocks the holder on `object` until somebody wakes it, or the virtual clock (nanoseconds of
// CLOCK_MONOTONIC's virtual twin) reaches `deadline`. `what` says for the deadlock report what it
// waits for ("mutex"). kCancelled and kSignal are returned only when `interrupts` says so.
enum Interrupts : unsigned {
  kInterruptNever = 0,
  kInterruptCancel = 1,
  kInterruptSignal = 2,   // a handler has run that was installed without SA_RESTART
  kInterruptHandler = 4,  // any handler has run
};
WakeReason sched_block(PointKind kind, const volatile void* object, const char* what,
                       uint64_t deadline, unsigned interrupts, const void* pc);

// Makes up to `count` of those blocked on `object` ready; which ones is the strategy's choice.
// Returns how many. May be called by a thread without the baton, too.
unsigned sched_wake(const volatile void* object, unsigned count);

// ---- around calls that may sleep in the kernel --------------------------------------------------

// The holder hands on and is outside; afterwards it queues and waits for its turn.
void sched_leave_game();
void sched_join_game();

// The holder keeps the baton, for the call is usually quick, but the watchdog may take it without a
// word.
// With `patient` it waits for some tenths of a second before that, instead of milliseconds: for
// what is not quick but has an end, such as a child.
void sched_brief_begin(bool patient = false);
void sched_brief_end();

// ---- points before accesses -------------------------------------------------------------------

// A unit's sites are there: sets the flags of those that are scheduling points. True: some of its
// plain accesses are looked at when they happen, as scheduling points or for a debugger.
bool sched_unit_registered(const heddle_unit* unit);

// Memory that was just allocated: nobody has touched it.
void sched_fresh_memory(const void* address, size_t size);

// ---- fork ---------------------------------------------------------------------------------------

// Around the real fork, by the holder. In the child all other threads are forgotten; the caller is
// thread 0, has the baton, and decides from a seed of its own.
void sched_fork_prepare();
void sched_fork_parent();
void sched_fork_child();

// The CPU mask the process had before it was pinned, for exec.
void sched_unpin();

// ---- signals ------------------------------------------------------------------------------------
//
// What threads of the program send each other does not go through the kernel, as long as the
// receiver is in the game, has a handler and does not block the signal: the sender, who has the
// baton, puts it among the receiver's letters and makes it ready. When the handler runs is the
// schedule's choice. A signal that the receiver blocks is left pending in the kernel, which hands
// it over when it is unblocked, a moment that the schedule decides, too; whoever waits for it
// (sigwait) is blocked in the scheduler and is made ready by the sender.
//
// For signals from elsewhere record installs a handler of its own; what it calls is
// async-signal-safe and acts on the calling thread:
//
//   if (sched_in_scheduler()) {          // in the middle of sched_*, perhaps waiting there for its
//     …note the signal…  sched_nudge();  // turn: not a safe point
//     return;
//   }
//
// A nudged thread that waits for its turn or for an object becomes ready, gets its turn, calls
// deliver_pending_signals() holding the baton, and then goes on waiting, unless the wait is one
// that handlers interrupt: then sched_block returns kSignal.
bool sched_in_scheduler();
void sched_nudge();
void sched_note_signal_from_outside();

// deliver_pending_signals has run a handler, which was installed with or without SA_RESTART.
void sched_handler_ran(bool restarts);

// A signal has arrived at a thread that was inside the scheduler.
void sched_signal_seen();

// ---- the end of a run -----------------------------------------------------------------------

// From rec_finish: completes the schedule file and leaves the outcome for whoever started the run.
void sched_finish(RunEnd end, uint64_t value, const char* text);

struct SchedCounts {
  uint64_t points;    // scheduling points passed
  uint64_t switches;  // hand-overs
  uint64_t hash;      // of the sequence of (thread, kind) of all points
  uint32_t threads;   // ever created
  uint32_t seized;    // times the watchdog had to act
};
SchedCounts sched_counts();

}  // namespace heddle::rt
