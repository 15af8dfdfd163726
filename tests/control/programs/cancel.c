// Cancellation of threads that wait for a condition, sleep, join, wait for a semaphore, compute
// with the asynchronous type, or have it disabled for a while; and, at the end, of the main thread.
#define _GNU_SOURCE
#include "control.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static volatile int cleaned, spinning;
static pthread_t main_thread;

static void unlock(void* argument) {
  (void)argument;
  ++cleaned;
  CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void count(void* argument) {
  (void)argument;
  ++cleaned;
}

static void* in_condition(void* argument) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, NULL);
  for (;;) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(0);
  return argument;
}

static void* in_sleep(void* argument) {
  pthread_cleanup_push(count, NULL);
  for (;;) sleep(1000);
  pthread_cleanup_pop(0);
  return argument;
}

static void* in_semaphore(void* argument) {
  pthread_cleanup_push(count, NULL);
  for (;;) sem_wait(&semaphore);
  pthread_cleanup_pop(0);
  return argument;
}

static void* in_join(void* argument) {
  pthread_t thread;
  pthread_create(&thread, NULL, in_sleep, NULL);
  pthread_cleanup_push(count, NULL);
  *(pthread_t*)argument = thread;
  pthread_join(thread, NULL);
  pthread_cleanup_pop(0);
  return argument;
}

static void* asynchronous(void* argument) {
  pthread_cleanup_push(count, NULL);
  CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
  spinning = 1;
  for (;;) sched_yield();
  pthread_cleanup_pop(0);
  return argument;
}

static void* disabled(void* argument) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  for (int i = 0; i < 20; ++i) usleep(1000);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_testcancel();
  CHECK(!"reached");
  return argument;
}

static void expect_cancelled(pthread_t thread) {
  void* result;
  CHECK(pthread_cancel(thread) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
}

static void* ends_main(void* argument) {
  void* result;
  sleep(1);
  CHECK(pthread_cancel(main_thread) == 0);
  CHECK(pthread_join(main_thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(cleaned == 7);
  puts("ok");
  exit(0);
  return argument;
}

int main(void) {
  sem_init(&semaphore, 0, 0);
  void* (*const entries[])(void*) = {in_condition, in_sleep, in_semaphore, asynchronous, disabled};
  for (int i = 0; i < 5; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, entries[i], NULL);
    if (i == 3) {
      while (!spinning) sched_yield();
    } else if (i != 1) {
      usleep(100);
    }
    expect_cancelled(thread);
  }
  pthread_t joiner, sleeper = 0;
  pthread_create(&joiner, NULL, in_join, &sleeper);
  while (sleeper == 0) sched_yield();
  usleep(10);
  expect_cancelled(joiner);
  expect_cancelled(sleeper);
  CHECK(cleaned == 6);
  main_thread = pthread_self();
  pthread_t last;
  pthread_create(&last, NULL, ends_main, NULL);
  pthread_cleanup_push(count, NULL);
  for (;;) pause();
  pthread_cleanup_pop(0);
}
