// Signals of a recorded program.
//
// The problem. A handler that runs in the middle of a segment would write its own words over it;
// one that runs on a thread without the baton would run beside the holder; and when an asynchronous
// signal arrives is chance. So the runtime stands before every handler of the program:
//
//   asynchronous  noted; delivered at the thread's next safe point: the start of a segment, the end
//                 of an intercepted call, or, when the thread is out of the game in a system call,
//                 at once, after it has taken the baton. What threads of the program send each
//                 other is under control (sched.h);
//   synchronous   (SIGSEGV and kin, SIGABRT) the handler runs at once. When a segment is open, what
//                 the handler does is not recorded: the segment still owns the place where its
//                 words would go. It is recorded again once the handler returns or jumps out;
//   fatal         a synchronous signal without handler: the stack and the outcome are recorded,
//   then
//                 the default action is taken.
//
// The program sees its own handlers when it asks: sigaction returns what it was given.
#pragma once

#include <signal.h>
#include <stdint.h>

namespace heddle::rt {

// The text of the assertion that failed on this thread; the abort that follows is its outcome.
void note_assertion(const char* text);

// A stack for handlers, so that an overflow of the thread's own can be recorded.
void signals_thread_begin();
void signals_thread_end();

// The program has a handler for a signal that could come from outside.
bool signals_handled();

// The program has a handler for `signal`.
bool has_handler(int signal);

// A real-time signal, of which several can be pending.
bool is_queued(int signal);

// The kernel's form of a set of signals.
uint64_t kernel_mask(const sigset_t& set);
// rt_sigprocmask: changes the caller's mask and returns what it was.
uint64_t set_mask(int how, uint64_t mask);

// A jump out of a handler: longjmp and kin.
void leave_handlers();

}  // namespace heddle::rt
