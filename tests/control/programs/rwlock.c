// Readers see a consistent pair; writers exclude everybody.
#define _GNU_SOURCE
#include "control.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long a, b;

static void* worker(void* argument) {
  for (int i = 0; i < 40; ++i) {
    if ((intptr_t)argument == 0 || i % 7 == 0) {
      if (i % 2 == 0) {
        while (pthread_rwlock_trywrlock(&lock) != 0) sched_yield();
      } else {
        CHECK(pthread_rwlock_wrlock(&lock) == 0);
      }
      CHECK(pthread_rwlock_wrlock(&lock) == EDEADLK);
      ++a;
      sched_yield();
      ++b;
    } else {
      if (i % 2 == 0) {
        while (pthread_rwlock_tryrdlock(&lock) != 0) sched_yield();
      } else {
        CHECK(pthread_rwlock_rdlock(&lock) == 0);
      }
      long seen = a;
      sched_yield();
      CHECK(seen == b);
    }
    CHECK(pthread_rwlock_unlock(&lock) == 0);
  }
  return argument;
}

int main(void) {
  run_threads(4, worker);
  CHECK(a == b && a == 40 + 3 * 6);
  struct timespec past = {1, 0};
  CHECK(pthread_rwlock_wrlock(&lock) == 0);
  CHECK(pthread_rwlock_timedrdlock(&lock, &past) == EDEADLK);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  return done();
}
