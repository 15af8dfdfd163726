// exit() while other threads run, wait and sleep; handlers still take locks.
#define _GNU_SOURCE
#include "control.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void at_end(void) {
  pthread_mutex_lock(&mutex);
  puts("ok");
  pthread_mutex_unlock(&mutex);
}

static void* worker(void* argument) {
  switch ((intptr_t)argument) {
    case 0:
      for (;;) sched_yield();
    case 1:
      for (;;) sleep(1);
    case 2:
      pthread_mutex_lock(&mutex);
      for (;;) pthread_cond_wait(&never, &mutex);
    default:
      usleep(5000);
      exit(0);
  }
  return NULL;
}

int main(void) {
  atexit(at_end);
  run_threads(4, worker);
  return 1;
}
