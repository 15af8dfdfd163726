// A timer's signal, which comes when the kernel says so, to threads that wait.
#define _GNU_SOURCE
#include "control.h"

#include <semaphore.h>
#include <signal.h>

static sem_t semaphore;
static volatile sig_atomic_t handled;

static void handler(int signal) {
  (void)signal;
  ++handled;
  sem_post(&semaphore);
}

static void* waits(void* argument) {
  while (sem_wait(&semaphore) != 0) CHECK(errno == EINTR);
  return argument;
}

int main(void) {
  sem_init(&semaphore, 0, 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 20000);
  run_threads(3, waits);
  ualarm(0, 0);
  CHECK(handled >= 3);
  return done();
}
