// What the test programs of the scheduler share. Each does one thing, checks its own result, and
// prints "ok" at its end.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

// Starts `count` threads (their number is the argument), waits for them.
static inline void run_threads(int count, void* (*entry)(void*)) {
  pthread_t threads[64];
  for (intptr_t i = 0; i < count; ++i) {
    CHECK(pthread_create(&threads[i], NULL, entry, (void*)i) == 0);
  }
  for (int i = 0; i < count; ++i) {
    void* result;
    CHECK(pthread_join(threads[i], &result) == 0);
  }
}

static inline int done(void) {
  puts("ok");
  return 0;
}
