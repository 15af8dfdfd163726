// A home-made mutex on the bare futex call, and a wait with a limit.
#define _GNU_SOURCE
#include "control.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static unsigned word;  // 0 free, 1 taken, 2 taken and somebody waits
static volatile long counter;
static unsigned gate;

static long futex(unsigned* at, int operation, unsigned value, const struct timespec* limit) {
  return syscall(SYS_futex, at, operation, value, limit, NULL, 0);
}

static void lock(void) {
  unsigned expected = 0;
  if (__atomic_compare_exchange_n(&word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0) {
    if (futex(&word, FUTEX_WAIT_PRIVATE, 2, NULL) != 0) CHECK(errno == EAGAIN || errno == EINTR);
  }
}

static void unlock(void) {
  if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
    futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static void* worker(void* argument) {
  while (__atomic_load_n(&gate, __ATOMIC_ACQUIRE) == 0) futex(&gate, FUTEX_WAIT_PRIVATE, 0, NULL);
  for (int i = 0; i < 40; ++i) {
    lock();
    long before = counter;
    sched_yield();
    counter = before + 1;
    unlock();
  }
  return argument;
}

static void* opener(void* argument) {
  const struct timespec limit = {30, 0};
  CHECK(futex(&gate, FUTEX_WAIT_PRIVATE, 0, &limit) == -1 && errno == ETIMEDOUT);
  CHECK(futex(&gate, FUTEX_WAIT_PRIVATE, 1, NULL) == -1 && errno == EAGAIN);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  futex(&gate, FUTEX_WAKE_PRIVATE, 1000, NULL);
  return argument;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, opener, NULL);
  run_threads(4, worker);
  pthread_join(thread, NULL);
  CHECK(counter == 160);
  return done();
}
