// Schedule files, the runtime's side: written as the run goes, read by the strategy `replay`.
//
// A schedule is the list of deviations from the default schedule (sched.h), so it is short, can be
// edited by hand, and losing a line means "as usual" there. docs/control.md has the grammar:
//
//   heddle-schedule 1
//   program shop
//   build-id 5c0f…
//   strategy random seed 117
//   at 2.14 unlock 1 shop+0x1249        thread 2, at its 14th step, before an unlock: thread 1 runs
//   at 1.20 wake 3                      of the waiters, thread 3 wakes
//   end 231 points hash 9c21f00d12345678
//
// The file is written through a shared mapping, so that it is complete up to the last decision
// however the process ends; bytes after the last line are zero then, and readers stop there.
#pragma once

#include "runtime/sched_state.h"

namespace heddle::rt {

const char* point_kind_name(PointKind kind);

bool schedule_is_ours();  // the process is the first of its run, not one that it started
void schedule_open();     // schedule_out, and the status page
void schedule_after_fork_in_child();  // the child's goes to a file of its own
void schedule_close();                // writes the `end` line

// The replay noticed that it is not on its schedule.
void schedule_diverged(const char* format, ...) __attribute__((format(printf, 1, 2)));
bool schedule_has_diverged();

}  // namespace heddle::rt
