// The memory shared with the collector: a memfd with a header, the ring of blocks and the side
// region (abi/abi.h), and the socket over which the memfd was sent.
//
// The memfd outlives the process, so whatever stands in it is not lost when the process is killed;
// nothing is ever copied out by the dying. Blocks change hands by two counters, submitted and
// released; a side that has to wait says so in a flag, so that the other pays for a futex call only
// when somebody sleeps.
#pragma once

#include "abi/abi.h"

#include <stddef.h>
#include <stdint.h>

namespace heddle::rt {

struct Region {
  heddle_shared* shared = nullptr;
  uint64_t* blocks = nullptr;
  uint32_t block_count = 0;
  uint64_t mapped_bytes = 0;
  int memory_fd = -1;
  int socket_fd = -1;
  bool own_collector = false;   // this process started it: its trace is complete when it hangs up
  bool unanswered = false;      // … and it has not yet said that it takes the recording
  bool private_memory = false;  // mode=memory: nobody reads
};

// Makes a region and finds a consumer for it. False: has told the user why in one line.
bool region_open(Region* region, heddle_level level, uint32_t parent_pid);

// Forgets the region of the parent, in a forked child.
void region_drop(Region* region);

// Hands the current block over and returns the next one, zeroed; waits until one is free. nullptr
// when the collector is gone.
uint64_t* region_next_block(Region* region);

// Hands the current block over without wanting another.
void region_submit(Region* region);

// Appends to the side region; the parts are padded to multiples of 8. Returns the offset within the
// memfd, or 0 when it could not be written.
struct Part {
  const void* data;
  size_t size;
};
uint64_t region_append(Region* region, const Part* parts, size_t count, uint64_t* length);

// Waits until a collector of our own has closed the trace.
void region_wait_for_collector(Region* region);

}  // namespace heddle::rt
