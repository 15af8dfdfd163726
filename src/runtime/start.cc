#include "runtime/start.h"

#include "runtime/options.h"
#include "runtime/raw.h"
#include "runtime/real.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sched.h"
#include "runtime/server.h"
#include "runtime/stream.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

namespace heddle::rt {
namespace {

enum class State : uint8_t { kUnstarted, kDormant, kControlled };
State g_state = State::kUnstarted;
int g_exit_status = 0;

heddle_level parse_level() {
  const char* text = rt_option(level);
  if (strcmp(text, "off") == 0) return HEDDLE_LEVEL_OFF;
  if (strcmp(text, "accesses") == 0) return HEDDLE_LEVEL_ACCESSES;
  if (strcmp(text, "flow") != 0) {
    say("HEDDLE_OPTIONS: level=%s is none of flow, accesses, off; taken as flow", text);
  }
  return HEDDLE_LEVEL_FLOW;
}

void note_exit_status(int status, void*) {
  g_exit_status = status;
}

using Main = int(int, char**, char**);
Main* g_main = nullptr;

// Handlers of exit() run last in, first out, and the C library registers the destructors of
// libraries before main: only from here on a handler runs before them.
int start_main(int argc, char** argv, char** environment) {
  if (!dormant()) on_exit(note_exit_status, nullptr);
  return g_main(argc, argv, environment);
}

__attribute__((constructor(101))) void library_loaded() {
  start();
}

// The last of the process's destructors that the program depends on: it depends on this library.
__attribute__((destructor(101))) void library_unloaded() {
  if (!dormant()) rec_finish(RunEnd::kExit, static_cast<uint64_t>(g_exit_status), nullptr);
}

}  // namespace

bool dormant() {
  return g_state != State::kControlled;
}

void start() {
  if (g_state != State::kUnstarted) return;
  const Inside guard;
  // A privileged process listens to nobody's environment.
  const char* text = getauxval(AT_SECURE) != 0 ? nullptr : getenv("HEDDLE_OPTIONS");
  if (text == nullptr) {
    g_state = State::kDormant;
    return;
  }
  parse_options(text);
  serve_runs();
  g_stream.level = parse_level();
  g_state = State::kControlled;
  stream_open(0);
  write_modules();
  signals_start();
  watch_forks();
  sched_init();
}

void rec_after_fork_in_child() {
  const Inside guard;
  const uint32_t parent = g_stream.pid;
  // A parent that could not be recorded has said why; its children need not say it again.
  if (!g_stream.recording) g_stream.level = HEDDLE_LEVEL_OFF;
  region_drop(&g_stream.region);
  g_stream.finished = false;
  stream_open(parent);
  forget_modules();
  write_modules();
  write_all_units();
}

}  // namespace heddle::rt

extern "C" int __libc_start_main(heddle::rt::Main* main, int argc, char** argv, void (*init)(),
                                 void (*fini)(), void (*rtld_fini)(), void* stack_end);

RT_EXPORT int __libc_start_main(heddle::rt::Main* main, int argc, char** argv, void (*init)(),
                                void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  heddle::rt::g_main = main;
  return REAL(__libc_start_main)(heddle::rt::start_main, argc, argv, init, fini, rtld_fini,
                                 stack_end);
}
