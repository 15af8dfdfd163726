// The first moment of the runtime in a process.
#pragma once

namespace heddle::rt {

// Decides whether the process is recorded and scheduled, and begins. From the library's constructor
// or from the first unit that registers, whichever is first; later calls do nothing.
void start();

// Installs what signals need (signals.cc), once the stream is open.
void signals_start();

// Follows the process into its children (intercept_process.cc).
void watch_forks();

}  // namespace heddle::rt
