// How the process meets its collector: by the socket named in HEDDLE_OPTIONS (heddle record made
// it), or by starting one.
#pragma once

namespace heddle::rt {

struct CollectorLink {
  int socket_fd = -1;  // negative: there is none, and the user has been told why
  bool started_here = false;
};

// Sends the memfd. A collector that runs has said that it takes it; one that was started here is
// not waited for, because loading it takes longer than most programs take to reach main. A forked
// child's trace has its process number at the end of its name.
CollectorLink connect_collector(int memory_fd, bool forked);

// Waits for the collector's word that it takes the memfd. False: it does not, and the user has been
// told.
bool collector_welcomes(int socket_fd);

}  // namespace heddle::rt
