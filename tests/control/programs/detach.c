// Detached threads, by attribute and by call; the last one ends the process after main is gone.
#define _GNU_SOURCE
#include "control.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int finished;

static void* worker(void* argument) {
  if ((intptr_t)argument % 2 == 0) pthread_detach(pthread_self());
  sleep(1);
  pthread_mutex_lock(&mutex);
  if (++finished == 6) puts("ok");
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  return argument;
}

static void* waits_for_all(void* argument) {
  pthread_mutex_lock(&mutex);
  while (finished != 6) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  return argument;
}

int main(void) {
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  for (intptr_t i = 0; i < 6; ++i) {
    CHECK(pthread_create(&thread, i % 2 == 0 ? NULL : &detached, worker, (void*)i) == 0);
  }
  CHECK(pthread_create(&thread, &detached, waits_for_all, NULL) == 0);
  pthread_exit(NULL);
}
