// Sleeps in the kernel by a call that nobody intercepts, while the others must go on.
#define _GNU_SOURCE
#include "control.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static volatile unsigned word;

// The bare instruction: no interposition sees it.
static long bare_futex(volatile unsigned* at, int operation, unsigned value) {
  long result;
  register long r10 __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_futex), "D"(at), "S"(operation), "d"(value), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

static void* sleeper(void* argument) {
  while (word == 0) bare_futex(&word, FUTEX_WAIT, 0);
  return argument;
}

static void* waker(void* argument) {
  for (int i = 0; i < 10; ++i) sched_yield();
  word = 1;
  bare_futex(&word, FUTEX_WAKE, 1000);
  return argument;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, sleeper, NULL);
  pthread_create(&threads[3], NULL, waker, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return done();
}
