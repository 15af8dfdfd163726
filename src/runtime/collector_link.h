// How the process meets its collector: by the socket named in HEDDLE_OPTIONS (heddle record made
// it), or by starting one.
#pragma once

namespace heddle::rt {

struct CollectorLink {
  int socket_fd = -1;  // negative: there is none, and the user has been told why
  bool started_here = false;
};

// Sends the memfd and waits for the collector's word that it takes it. A forked child's trace has
// its process number at the end of its name.
CollectorLink connect_collector(int memory_fd, bool forked);

}  // namespace heddle::rt
