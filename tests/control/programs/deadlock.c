// Two locks in opposite order. Deadlocks under some seeds.
#define _GNU_SOURCE
#include "control.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void* worker(void* argument) {
  pthread_mutex_t* first = argument == NULL ? &a : &b;
  pthread_mutex_t* second = argument == NULL ? &b : &a;
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
  return argument;
}

int main(void) {
  run_threads(2, worker);
  return done();
}
