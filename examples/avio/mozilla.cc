// Mozilla, nsXULDocument.cpp: a script is set under a lock and used, under the same lock, when its
// load has completed. AVIO figure 1 and table 3. The story is in mozilla.md.
#include "../example.h"

#include <mutex>

namespace {

struct Script {
  const char* source;
  int compiled = 0;
};

std::mutex gLock;
Script* gCurrentScript = nullptr;

// The event queue of the thread that loads: at most one completion is under way.
struct EventQueue {
  void (*pending)() = nullptr;

  void post(void (*callback)()) { pending = callback; }

  void run_pending() {
    if (pending == nullptr) return;
    void (*callback)() = pending;
    pending = nullptr;
    callback();
  }
};

void on_load_complete() {
  const std::lock_guard guard(gLock);
  Script* script = gCurrentScript;  // heddle: I
  script->compiled += script->source[0] != '\0';
}

void load_script(Script* script, EventQueue* events) {
  const std::lock_guard guard(gLock);
  gCurrentScript = script;  // heddle: P
  events->post(on_load_complete);
}

void close_document() {
  const std::lock_guard guard(gLock);
  gCurrentScript = nullptr;  // heddle: R
}

}  // namespace

int main(int argc, char** argv) {
  const int loads = example::rounds(argc, argv, 3);
  Script script{"onload()"};
  example::in_parallel(
      [&] {
        EventQueue events;
        for (int i = 0; i < loads; ++i) {
          load_script(&script, &events);
          events.run_pending();
        }
      },
      [&] {
        for (int i = 0; i < loads; ++i) close_document();
      });

  if (script.compiled != loads) {
    example::fail("script loaded %d times, compiled %d times", loads, script.compiled);
  }
}
