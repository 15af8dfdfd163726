// Never ends, and never blocks.
#define _GNU_SOURCE
#include "control.h"

static void* worker(void* argument) {
  for (;;) sched_yield();
  return argument;
}

int main(void) {
  run_threads(2, worker);
  return 1;
}
