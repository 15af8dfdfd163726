// The watchdog: the net under the interceptors (sched.h has its place in the whole).
//
// A thread made by a bare clone(), with a stack and a thread block of its own, unknown to the C
// library: it must not count as one of the program's threads, or the program would never end by
// pthread_exit. It uses system calls only.
#pragma once

#include <stdint.h>

namespace heddle::rt {

void watchdog_start();  // does nothing when it runs already
void watchdog_after_fork_in_child();

// The kernel's state of a thread: 'R', 'S', 'D', 'T', 'Z', … or 0 when there is no such thread.
char kernel_state(uint32_t tid);

}  // namespace heddle::rt
