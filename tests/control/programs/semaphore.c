#define _GNU_SOURCE
#include "control.h"

#include <semaphore.h>

static sem_t slots, mutex;
static volatile int inside, most, total;

static void* worker(void* argument) {
  for (int i = 0; i < 30; ++i) {
    while (sem_wait(&slots) != 0) CHECK(errno == EINTR);
    CHECK(sem_wait(&mutex) == 0);
    if (++inside > most) most = inside;
    ++total;
    CHECK(sem_post(&mutex) == 0);
    sched_yield();
    while (sem_trywait(&mutex) != 0) CHECK(errno == EAGAIN);
    --inside;
    CHECK(sem_post(&mutex) == 0);
    CHECK(sem_post(&slots) == 0);
  }
  return argument;
}

int main(void) {
  CHECK(sem_init(&slots, 0, 2) == 0 && sem_init(&mutex, 0, 1) == 0);
  run_threads(5, worker);
  CHECK(total == 150 && most <= 2 && inside == 0);
  int value;
  CHECK(sem_getvalue(&slots, &value) == 0 && value == 2);
  return done();
}
