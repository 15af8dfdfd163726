// A thread ends while it holds a robust mutex: the next owner is told.
#define _GNU_SOURCE
#include "control.h"

static pthread_mutex_t mutex;
static volatile int dead_owners, fine;

static void* dies(void* argument) {
  CHECK(pthread_mutex_lock(&mutex) == 0);
  sched_yield();
  return argument;
}

static void* waits(void* argument) {
  const int error = pthread_mutex_lock(&mutex);
  if (error == EOWNERDEAD) {
    ++dead_owners;
    CHECK(pthread_mutex_consistent(&mutex) == 0);
  } else {
    CHECK(error == 0);
    ++fine;
  }
  CHECK(pthread_mutex_unlock(&mutex) == 0);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  CHECK(pthread_mutex_init(&mutex, &attributes) == 0);
  pthread_t first;
  pthread_create(&first, NULL, dies, NULL);
  run_threads(3, waits);
  pthread_join(first, NULL);
  const int error = pthread_mutex_lock(&mutex);
  if (error == EOWNERDEAD) {
    ++dead_owners;
    CHECK(pthread_mutex_consistent(&mutex) == 0);
  }
  CHECK(dead_owners == 1);
  return done();
}
