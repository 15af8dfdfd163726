// Destructors of thread-local objects and of keys run under control: they take locks, and a lost
// update would show.
#define _GNU_SOURCE 1
#include "control.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;
static pthread_key_t key;

static void increment() {
  pthread_mutex_lock(&mutex);
  long before = counter;
  sched_yield();
  counter = before + 1;
  pthread_mutex_unlock(&mutex);
}

struct Local {
  ~Local() { increment(); }
  int touched = 0;
};
static thread_local Local local;

static void key_destructor(void* value) {
  increment();
  const auto round = reinterpret_cast<intptr_t>(value);
  if (round < 3) pthread_setspecific(key, reinterpret_cast<void*>(round + 1));
}

static void* worker(void* argument) {
  local.touched = 1;
  pthread_setspecific(key, reinterpret_cast<void*>(1));
  if (argument == nullptr) pthread_exit(nullptr);
  return argument;
}

int main() {
  pthread_key_create(&key, key_destructor);
  run_threads(6, worker);
  CHECK(counter == 6 * 4);
  return done();
}
