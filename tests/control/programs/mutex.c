// Mutual exclusion by every type of mutex; a lost update would show in the sum.
#define _GNU_SOURCE
#include "control.h"

enum { kThreads = 4, kRounds = 50 };
static pthread_mutex_t mutexes[4];
static volatile long counters[4];

static void* worker(void* argument) {
  for (int i = 0; i < kRounds; ++i) {
    for (int m = 0; m < 4; ++m) {
      if (i % 3 == 0) {
        while (pthread_mutex_trylock(&mutexes[m]) != 0) sched_yield();
      } else {
        CHECK(pthread_mutex_lock(&mutexes[m]) == 0);
      }
      if (m == 1) CHECK(pthread_mutex_lock(&mutexes[m]) == 0);
      if (m == 2) CHECK(pthread_mutex_lock(&mutexes[m]) == EDEADLK);
      long before = counters[m];
      sched_yield();
      counters[m] = before + 1;
      if (m == 1) CHECK(pthread_mutex_unlock(&mutexes[m]) == 0);
      CHECK(pthread_mutex_unlock(&mutexes[m]) == 0);
    }
  }
  CHECK(pthread_mutex_unlock(&mutexes[2]) == EPERM);
  return argument;
}

int main(void) {
  const int types[4] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                        PTHREAD_MUTEX_ADAPTIVE_NP};
  for (int m = 0; m < 4; ++m) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, types[m]);
    CHECK(pthread_mutex_init(&mutexes[m], &attributes) == 0);
  }
  run_threads(kThreads, worker);
  for (int m = 0; m < 4; ++m) CHECK(counters[m] == kThreads * kRounds);
  for (int m = 0; m < 4; ++m) CHECK(pthread_mutex_destroy(&mutexes[m]) == 0);
  return done();
}
