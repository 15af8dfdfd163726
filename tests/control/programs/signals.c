// Handlers that run on threads that wait, sleep, compute or sit in a system call, or were created a
// moment ago; sigwait, sigtimedwait, pause, sigsuspend and ppoll; signals to the process.
#define _GNU_SOURCE
#include "control.h"

#include <poll.h>
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

// Until the handler has run; a signal that comes in between waits in the mask.
static void* suspends(void* argument) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  const int seen = handled;
  sem_post(argument);
  while (handled == seen) CHECK(sigsuspend(&before) == -1 && errno == EINTR);
  // A signal that is pending interrupts a call that lets it in.
  pthread_kill(pthread_self(), SIGUSR1);
  CHECK(ppoll(NULL, 0, NULL, &before) == -1 && errno == EINTR && handled == seen + 2);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return argument;
}

static void* pauses(void* argument) {
  sem_post(argument);
  CHECK(pause() == -1 && errno == EINTR);
  return argument;
}

static void* starts(void* argument) {
  return argument;
}

static void others(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  siginfo_t info;
  struct timespec limit = {3, 0};
  CHECK(sigtimedwait(&set, &info, &limit) == -1 && errno == EAGAIN);
  CHECK(kill(getpid(), SIGUSR2) == 0);
  CHECK(sigtimedwait(&set, &info, &limit) == SIGUSR2 && info.si_pid == getpid());

  // To the process: the first thread gets it.
  int before = handled;
  CHECK(kill(getpid(), SIGUSR1) == 0 && handled == before + 1);
  CHECK(sem_wait(&semaphore) == 0);

  sem_t ready;
  sem_init(&ready, 0, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, suspends, &ready);
  while (sem_wait(&ready) != 0) CHECK(errno == EINTR);
  before = handled;
  CHECK(pthread_kill(thread, SIGUSR1) == 0);
  pthread_join(thread, NULL);
  CHECK(handled == before + 2);

  // It may have the signal before it pauses: then it needs another.
  pthread_create(&thread, NULL, pauses, &ready);
  while (sem_wait(&ready) != 0) CHECK(errno == EINTR);
  while (pthread_tryjoin_np(thread, NULL) != 0) {
    pthread_kill(thread, SIGUSR1);
    sched_yield();
  }

  // Threads that have hardly begun.
  before = handled;
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    pthread_create(&threads[i], NULL, starts, NULL);
    pthread_kill(threads[i], SIGUSR1);
  }
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  CHECK(handled - before <= 8);
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
  others();
  return done();
}
