// A bounded queue with two conditions; then everybody waits for a broadcast.
#define _GNU_SOURCE
#include "control.h"

enum { kItems = 100, kCapacity = 3 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER,
                      start = PTHREAD_COND_INITIALIZER;
static int queue[kCapacity], length, produced, consumed, waiting, go;
static long sum;

static void* worker(void* argument) {
  const intptr_t me = (intptr_t)argument;
  pthread_mutex_lock(&mutex);
  ++waiting;
  while (!go) pthread_cond_wait(&start, &mutex);
  pthread_mutex_unlock(&mutex);
  for (;;) {
    pthread_mutex_lock(&mutex);
    if (me < 2) {
      while (length == kCapacity && produced < kItems) pthread_cond_wait(&not_full, &mutex);
      if (produced == kItems) break;
      queue[length++] = ++produced;
      if (produced == kItems) pthread_cond_broadcast(&not_full);
      pthread_cond_signal(&not_empty);
    } else {
      while (length == 0 && consumed < kItems) pthread_cond_wait(&not_empty, &mutex);
      if (consumed == kItems) break;
      sum += queue[--length];
      if (++consumed == kItems) pthread_cond_broadcast(&not_empty);
      pthread_cond_signal(&not_full);
    }
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t threads[5];
  for (intptr_t i = 0; i < 5; ++i) pthread_create(&threads[i], NULL, worker, (void*)i);
  for (;;) {
    pthread_mutex_lock(&mutex);
    const int all = waiting == 5;
    if (all) {
      go = 1;
      pthread_cond_broadcast(&start);
    }
    pthread_mutex_unlock(&mutex);
    if (all) break;
    sched_yield();
  }
  for (int i = 0; i < 5; ++i) pthread_join(threads[i], NULL);
  CHECK(sum == kItems * (kItems + 1) / 2);
  pthread_cond_destroy(&start);
  return done();
}
