// Signals that threads of the program send each other (sched.h, "signals").
#pragma once

#include "runtime/sched_state.h"

namespace heddle::rt {

// Has the kernel send the signal; returns what the call returns.
using KernelSend = long (*)(const void* argument);

// By the holder. `send` is called when the kernel has to carry the signal: to the caller itself, to
// a thread that is in a system call or blocks the signal, or without a handler. Returns 0, or what
// `send` returned.
long send_to_thread(Thread* target, const Letter& letter, KernelSend send, const void* argument);
long send_to_process(const Letter& letter, KernelSend send, const void* argument);

}  // namespace heddle::rt
