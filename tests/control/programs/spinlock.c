#define _GNU_SOURCE
#include "control.h"

static pthread_spinlock_t lock;
static volatile long counter;

static void* worker(void* argument) {
  for (int i = 0; i < 60; ++i) {
    if (i % 3 == 0) {
      while (pthread_spin_trylock(&lock) != 0) {
      }
    } else {
      CHECK(pthread_spin_lock(&lock) == 0);
    }
    long before = counter;
    sched_yield();
    counter = before + 1;
    CHECK(pthread_spin_unlock(&lock) == 0);
  }
  return argument;
}

int main(void) {
  CHECK(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
  run_threads(4, worker);
  CHECK(counter == 240);
  return done();
}
