// What the runtime knows about file descriptors: whether what arrives there can come from outside
// the process.
//
// It matters for the clock: while every thread waits and one of them waits for the outside, virtual
// time must not leap (clock.h). A pipe or socket pair that this process made, and has not shared by
// fork, is internal; so is a connection between two sockets of the process. Everything else is
// external: a terminal, a listening socket, an inherited pipe.
#pragma once

namespace heddle::rt {

bool descriptor_is_external(int fd);

void descriptor_opened(int fd, bool internal);
void descriptor_connected(int fd);  // by connect or accept
void descriptors_shared();          // by fork: from now on all are external

// An alarm or interval timer of the process is running.
bool signals_may_come();

}  // namespace heddle::rt
