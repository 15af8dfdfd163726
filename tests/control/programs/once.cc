// pthread_once, std::call_once (with an exception on the first try), guards of function statics
// (with an exception on the first try), each raced by several threads while the initialiser yields.
#define _GNU_SOURCE 1
#include "control.h"

#include <mutex>

static int once_runs, call_runs, call_throws, static_runs, static_throws;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::once_flag flag;

struct Slow {
  Slow() {
    for (int i = 0; i < 5; ++i) sched_yield();
    if (static_throws == 0) {
      ++static_throws;
      throw 1;
    }
    ++static_runs;
    value = 42;
  }
  int value;
};

static int slow_static() {
  static Slow slow;
  return slow.value;
}

static void initialise() {
  for (int i = 0; i < 5; ++i) sched_yield();
  ++once_runs;
}

static void* worker(void* argument) {
  pthread_once(&once, initialise);
  CHECK(once_runs == 1);
  for (;;) {
    try {
      std::call_once(flag, [] {
        for (int i = 0; i < 5; ++i) sched_yield();
        if (call_throws == 0) {
          ++call_throws;
          throw 1;
        }
        ++call_runs;
      });
      break;
    } catch (int) {
    }
  }
  CHECK(call_runs == 1);
  for (;;) {
    try {
      CHECK(slow_static() == 42);
      break;
    } catch (int) {
    }
  }
  CHECK(static_runs == 1);
  return argument;
}

int main() {
  run_threads(4, worker);
  CHECK(call_throws == 1 && static_throws == 1);
  return done();
}
