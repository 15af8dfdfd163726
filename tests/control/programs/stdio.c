// Locks of stdio streams, held across scheduling points, against printf from other threads.
#define _GNU_SOURCE
#include "control.h"

static FILE* out;

static void* worker(void* argument) {
  for (int i = 0; i < 20; ++i) {
    if ((intptr_t)argument % 2 == 0) {
      flockfile(out);
      fputs_unlocked("one ", out);
      sched_yield();
      usleep(10);
      fputs_unlocked("line\n", out);
      funlockfile(out);
    } else {
      fprintf(out, "one line\n");
      sched_yield();
    }
  }
  return argument;
}

int main(void) {
  char* text = NULL;
  size_t size = 0;
  out = open_memstream(&text, &size);
  run_threads(4, worker);
  fclose(out);
  CHECK(size == 80 * 9);
  for (int i = 0; i < 80; ++i) CHECK(memcmp(text + 9 * i, "one line\n", 9) == 0);
  return done();
}
