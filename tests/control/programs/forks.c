// fork while other threads hold locks and wait; the child has threads of its own; exec.
#define _GNU_SOURCE
#include "control.h"

#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;

static void* busy(void* argument) {
  while (!stop) {
    pthread_mutex_lock(&mutex);
    sched_yield();
    pthread_mutex_unlock(&mutex);
    usleep(100);
  }
  return argument;
}

static volatile long counter;
static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

static void* count(void* argument) {
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&fresh);
    long before = counter;
    sched_yield();
    counter = before + 1;
    pthread_mutex_unlock(&fresh);
  }
  return argument;
}

// Handlers as libraries have them: locks taken before, given back on both sides, and a byte
// written.
static int ends[2];
static volatile int prepared, in_parent, in_child;
static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&kept);
  ++prepared;
}

static void release(void) {
  pthread_mutex_unlock(&kept);
  pthread_mutex_unlock(&mutex);
}

static void parent(void) {
  ++in_parent;
  release();
}

static void child(void) {
  ++in_child;
  release();
  CHECK(write(ends[1], "x", 1) == 1);
}

int main(int argc, char** argv) {
  if (argc > 1) {
    run_threads(3, count);
    return counter == 60 ? 17 : 1;
  }
  CHECK(pipe(ends) == 0);
  pthread_atfork(prepare, parent, child);
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, busy, NULL);
  for (int round = 0; round < 3; ++round) {
    usleep(50);
    const pid_t child = fork();
    if (child == 0) {
      if (round == 2) {
        execl(argv[0], argv[0], "again", NULL);
        _exit(1);
      }
      CHECK(in_child == 1);
      run_threads(4, count);
      _exit(counter == 80 ? 17 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17);
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  CHECK(prepared == 3 && in_parent == 3 && in_child == 0);
  CHECK(system("exit 3") >> 8 == 3);
  return done();
}
