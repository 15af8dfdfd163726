// The state behind record.h, for the few files of the recording half that share it.
#pragma once

#include "abi/abi.h"
#include "runtime/record.h"
#include "runtime/region.h"

namespace heddle::rt {

struct Stream {
  Region region;
  heddle_tls* holder =
      nullptr;                 // of the thread that has the cursor; nullptr while the baton travels
  uint64_t* cursor = nullptr;  // while nobody has it
  uint64_t* limit = nullptr;   // of the current block
  ThreadId thread = 0;
  heddle_level level = HEDDLE_LEVEL_OFF;
  bool recording = false;  // into the ring; else into a scratch block
  bool finished = false;
  bool stalled = false;
  uint32_t pid = 0;
};

extern Stream g_stream;

// The scratch block of a thread whose words nobody wants. As long as there are rounds left, a full
// one is started over by __heddle_refill_inline itself (inline_entry.cc), which asks nobody. There
// are none while the thread's words are recorded, and none left when it gets another block: the
// thread's limit belongs to this one.
struct Scratch {
  uint64_t* start;
  int64_t rounds;
};
extern "C" __attribute__((visibility("hidden"),
                          tls_model("initial-exec"))) __thread Scratch heddle_scratch;

inline uint64_t* closed_cursor() {
  return reinterpret_cast<uint64_t*>(~uint64_t{0} - 7);
}

inline bool has_cursor() {
  return g_stream.holder == &__heddle_tls;
}

// `count` free words for the holder at __heddle_tls.cursor.
uint64_t* make_room(uint32_t count);

// Opens the stream of this process: region, collector, first block. False: runs unrecorded.
bool stream_open(uint32_t parent_pid);

// From here on the words of everybody go to scratch blocks.
void stream_stop();
bool stream_records_flow();

// Signals that wait for a safe point (signals.cc). While there are any, limits stay closed.
bool signals_pending();

// A handler of a synchronous signal runs on top of an open segment: its words must not go where
// that segment will go on writing (signals.cc).
bool in_synchronous_handler();

void write_unit(const heddle_unit* unit);  // units.cc
void write_all_units();
void write_modules();   // write_modules.cc: those that were loaded since the last time
void forget_modules();  // a new trace begins

}  // namespace heddle::rt
