#define _GNU_SOURCE
#include "control.h"

enum { kThreads = 5, kRounds = 20 };
static pthread_barrier_t barrier;
static volatile int phase[kThreads], serial;

static void* worker(void* argument) {
  const intptr_t me = (intptr_t)argument;
  for (int round = 1; round <= kRounds; ++round) {
    phase[me] = round;
    const int result = pthread_barrier_wait(&barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    if (result != 0) ++serial;
    for (int i = 0; i < kThreads; ++i) CHECK(phase[i] == round);
    pthread_barrier_wait(&barrier);
  }
  return argument;
}

int main(void) {
  CHECK(pthread_barrier_init(&barrier, NULL, kThreads) == 0);
  run_threads(kThreads, worker);
  CHECK(serial == kRounds);
  CHECK(pthread_barrier_destroy(&barrier) == 0);
  return done();
}
