#define _GNU_SOURCE
#include "control.h"

#include <threads.h>

static mtx_t mutex, recursive, timed;
static cnd_t cond;
static once_flag flag = ONCE_FLAG_INIT;
static int ready, runs;
static volatile long counter;
static tss_t key;
static volatile int destroyed;

static void initialise(void) {
  thrd_yield();
  ++runs;
}

static void destroy(void* value) {
  CHECK(value == &key);
  ++destroyed;
}

static int worker(void* argument) {
  call_once(&flag, initialise);
  CHECK(runs == 1);
  tss_set(key, &key);
  CHECK(mtx_lock(&mutex) == thrd_success);
  while (!ready) CHECK(cnd_wait(&cond, &mutex) == thrd_success);
  CHECK(mtx_unlock(&mutex) == thrd_success);
  for (int i = 0; i < 30; ++i) {
    if (i % 2 == 0) {
      CHECK(mtx_lock(&recursive) == thrd_success);
    } else {
      while (mtx_trylock(&recursive) != thrd_success) thrd_yield();
    }
    CHECK(mtx_lock(&recursive) == thrd_success);
    long before = counter;
    thrd_yield();
    counter = before + 1;
    CHECK(mtx_unlock(&recursive) == thrd_success);
    CHECK(mtx_unlock(&recursive) == thrd_success);
  }
  struct timespec limit;
  timespec_get(&limit, TIME_UTC);
  limit.tv_sec += 100;
  CHECK(mtx_timedlock(&timed, &limit) == thrd_timedout);
  const struct timespec nap = {5, 0};
  CHECK(thrd_sleep(&nap, NULL) == 0);
  return (int)(intptr_t)argument + 100;
}

int main(void) {
  CHECK(mtx_init(&mutex, mtx_plain) == thrd_success);
  CHECK(mtx_init(&recursive, mtx_plain | mtx_recursive) == thrd_success);
  CHECK(mtx_init(&timed, mtx_timed) == thrd_success);
  CHECK(cnd_init(&cond) == thrd_success);
  CHECK(tss_create(&key, destroy) == thrd_success);
  mtx_lock(&timed);
  thrd_t threads[4];
  for (intptr_t i = 0; i < 4; ++i)
    CHECK(thrd_create(&threads[i], worker, (void*)i) == thrd_success);
  mtx_lock(&mutex);
  ready = 1;
  cnd_broadcast(&cond);
  mtx_unlock(&mutex);
  for (int i = 0; i < 4; ++i) {
    int result = 0;
    CHECK(thrd_join(threads[i], &result) == thrd_success && result == 100 + i);
  }
  CHECK(counter == 120 && destroyed == 4);
  return done();
}
