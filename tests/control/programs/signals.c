// Handlers that run on threads that wait, sleep, compute or sit in a system call; sigwait.
#define _GNU_SOURCE
#include "control.h"

#include <semaphore.h>
#include <signal.h>

static sem_t semaphore;
static volatile sig_atomic_t handled;
static volatile int stop;
static int ends[2];

static void handler(int signal) {
  (void)signal;
  ++handled;
  sem_post(&semaphore);
}

static void* waits(void* argument) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  char byte;
  switch ((intptr_t)argument) {
    case 0:
      pthread_mutex_lock(&mutex);
      while (!stop) {
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        ++limit.tv_sec;
        pthread_cond_timedwait(&cond, &mutex, &limit);
      }
      pthread_mutex_unlock(&mutex);
      break;
    case 1:
      while (!stop) sleep(1);
      break;
    case 2:
      while (!stop) sched_yield();
      break;
    default:
      CHECK(read(ends[0], &byte, 1) == 1);
      break;
  }
  return argument;
}

static void* waits_for_signal(void* argument) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  int signal = 0;
  CHECK(sigwait(&set, &signal) == 0 && signal == SIGUSR2);
  return argument;
}

int main(void) {
  sem_init(&semaphore, 0, 0);
  CHECK(pipe(ends) == 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);

  pthread_t threads[4], waiter;
  for (intptr_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, waits, (void*)i);
  pthread_create(&waiter, NULL, waits_for_signal, NULL);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) {
      CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
      while (sem_wait(&semaphore) != 0) CHECK(errno == EINTR);
    }
  }
  CHECK(handled == 20);
  CHECK(raise(SIGUSR1) == 0 && handled == 21);
  CHECK(sem_wait(&semaphore) == 0);
  CHECK(pthread_kill(waiter, SIGUSR2) == 0);
  pthread_join(waiter, NULL);
  stop = 1;
  CHECK(write(ends[1], "x", 1) == 1);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return done();
}
