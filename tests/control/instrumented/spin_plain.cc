// A wait for plain memory that the compiler must read again, because it calls something it does not
// see through. No scheduling point in the loop.
#include "../programs/control.h"

struct Shared {
  int ready = 0;
  int value = 0;
};

__attribute__((noinline)) static int read_ready(const Shared* shared) {
  __asm__ volatile("" ::: "memory");
  return shared->ready;
}

static Shared* shared;

static void* waits(void* argument) {
  while (read_ready(shared) == 0) {
  }
  CHECK(shared->value == 42);
  return argument;
}

int main() {
  shared = new Shared;
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, waits, nullptr) == 0);
  sched_yield();  // the other one spins now
  shared->value = 42;
  shared->ready = 1;
  CHECK(pthread_join(thread, nullptr) == 0);
  delete shared;
  return done();
}
