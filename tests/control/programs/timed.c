// Time limits of every kind. Waiting for hours takes no time; the virtual clock says it did.
#define _GNU_SOURCE
#include "control.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static struct timespec in(clockid_t clock, long seconds) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_sec += seconds;
  return time;
}

static void* impatient(void* argument) {
  struct timespec limit = in(CLOCK_REALTIME, 3600);
  CHECK(pthread_mutex_timedlock(&mutex, &limit) == ETIMEDOUT);
  limit = in(CLOCK_MONOTONIC, 10);
  CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
  limit = in(CLOCK_REALTIME, 10);
  CHECK(pthread_rwlock_timedwrlock(&rwlock, &limit) == ETIMEDOUT);
  limit = in(CLOCK_REALTIME, 10);
  CHECK(pthread_rwlock_timedrdlock(&rwlock, &limit) == ETIMEDOUT);
  return argument;
}

static void* poster(void* argument) {
  sleep(100);
  CHECK(sem_post(&semaphore) == 0);
  return argument;
}

int main(void) {
  const time_t start = time(NULL);
  sem_init(&semaphore, 0, 0);
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&rwlock);
  pthread_create(&thread, NULL, impatient, NULL);
  pthread_join(thread, NULL);
  CHECK(time(NULL) - start >= 3630);

  struct timespec limit = in(CLOCK_REALTIME, 50);
  CHECK(pthread_cond_timedwait(&cond, &mutex, &limit) == ETIMEDOUT);
  limit = in(CLOCK_MONOTONIC, 50);
  CHECK(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
  pthread_mutex_unlock(&mutex);

  pthread_create(&thread, NULL, poster, NULL);
  limit = in(CLOCK_REALTIME, 10);
  CHECK(sem_timedwait(&semaphore, &limit) == -1 && errno == ETIMEDOUT);
  limit = in(CLOCK_REALTIME, 1000);
  CHECK(sem_timedwait(&semaphore, &limit) == 0);
  pthread_join(thread, NULL);

  limit = in(CLOCK_REALTIME, 7);
  CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &limit, NULL) == 0);
  const struct timespec now = in(CLOCK_REALTIME, 0);
  CHECK(now.tv_sec > limit.tv_sec || (now.tv_sec == limit.tv_sec && now.tv_nsec >= limit.tv_nsec));
  usleep(0);
  CHECK(usleep(1500000) == 0);

  // A busy wait ends too.
  const struct timespec end = in(CLOCK_MONOTONIC, 1);
  for (;;) {
    const struct timespec at = in(CLOCK_MONOTONIC, 0);
    if (at.tv_sec > end.tv_sec) break;
  }
  return done();
}
