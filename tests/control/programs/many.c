// Two thousand threads over time, two hundred at once.
#define _GNU_SOURCE
#include "control.h"

enum { kWaves = 10, kAtOnce = 200 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int present;
static long total;

static void* worker(void* argument) {
  pthread_mutex_lock(&mutex);
  ++total;
  if (++present == kAtOnce) pthread_cond_broadcast(&cond);
  while (present % kAtOnce != 0) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_t threads[kAtOnce];
  for (int wave = 0; wave < kWaves; ++wave) {
    present = 0;
    for (intptr_t i = 0; i < kAtOnce; ++i) {
      CHECK(pthread_create(&threads[i], NULL, worker, (void*)i) == 0);
    }
    for (intptr_t i = 0; i < kAtOnce; ++i) {
      void* result;
      CHECK(pthread_join(threads[i], &result) == 0 && result == (void*)i);
    }
  }
  CHECK(total == kWaves * kAtOnce);
  return done();
}
