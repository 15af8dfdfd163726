// The fork server: for a command that runs the program thousands of times.
//
// Starting a program is mostly the dynamic linker's work, the same every time. So the runtime stops
// before the first of the program's own constructors and waits at a socket (option server_fd);
// every message there holds the options of one run (seed and so on), for which the process forks.
// The child goes on as if it had been started with those options; the parent says which process it
// is and, later, how it ended.
//
//   server   → command    int32: its process number, once
//   command  → server     options of a run, as in HEDDLE_OPTIONS; the socket's end: no more runs
//   server   → command    int32: the process number of the run
//   server   → command    int32: its status, as waitpid gives it
//
// A process that has threads already (a library's constructor started them) cannot be forked: it
// ends at once, without a word, and the command starts every run by itself.
#pragma once

namespace heddle::rt {

// Returns in every child, with the options of its run; or at once when no server is wanted.
void serve_runs();

}  // namespace heddle::rt
