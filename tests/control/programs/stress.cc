// stress SEED: a random program of locks, read-write locks, conditions, semaphores and barriers,
// generated from the seed, free of deadlocks by construction, that checks exclusion as it goes.
//
// Why it cannot deadlock: the program is a list of phases, the same for all threads. Within a phase
// locks of any kind are taken in ascending order and released before its end; a condition is waited
// for by everybody but the phase's leader, who holds nothing and sets it; a barrier ends a phase.
#define _GNU_SOURCE 1
#include "control.h"

#include <atomic>
#include <random>
#include <vector>

#include <semaphore.h>

namespace {

constexpr int kLocks = 4;
constexpr int kMostPhases = 6;

struct Step {
  enum Kind { kLocks, kTryLock, kTimedLock, kRead, kWrite, kSemaphore, kYield, kSleep, kRecursive };
  Kind kind;
  int first, last;  // locks taken: first, first + 1, …, last
  int pauses;
};

struct Phase {
  enum End { kNone, kBarrier, kBroadcast, kSignals };
  std::vector<std::vector<Step>> steps;  // per thread
  End end;
  int leader;
};

pthread_mutex_t mutexes[kLocks];
pthread_mutex_t recursive;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
sem_t semaphore;
pthread_barrier_t barrier;
pthread_mutex_t stage_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t stage_conds[kMostPhases];  // one each: a signal must not wake one of another phase
int stage;

// What exclusion protects: broken if a thread finds another one inside.
std::atomic<int> inside[kLocks], inside_recursive, writers, readers, in_semaphore;
int semaphore_count;
std::vector<Phase> phases;
int thread_count;

void pause_for(int count) {
  for (int i = 0; i < count; ++i) sched_yield();
}

void enter(int lock, int pauses) {
  CHECK(inside[lock] == 0);
  inside[lock] = 1;
  pause_for(pauses);
}

void leave(int lock) {
  CHECK(inside[lock] == 1);
  inside[lock] = 0;
  CHECK(pthread_mutex_unlock(&mutexes[lock]) == 0);
}

timespec soon(long nanoseconds) {
  timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_nsec += nanoseconds;
  if (limit.tv_nsec >= 1000000000) {
    limit.tv_nsec -= 1000000000;
    ++limit.tv_sec;
  }
  return limit;
}

void run(const Step& step) {
  switch (step.kind) {
    case Step::kLocks:
      for (int lock = step.first; lock <= step.last; ++lock) {
        CHECK(pthread_mutex_lock(&mutexes[lock]) == 0);
        enter(lock, step.pauses);
      }
      for (int lock = step.last; lock >= step.first; --lock) leave(lock);
      break;
    case Step::kTryLock:
      if (pthread_mutex_trylock(&mutexes[step.first]) == 0) {
        enter(step.first, step.pauses);
        leave(step.first);
      }
      break;
    case Step::kTimedLock: {
      const timespec limit = soon(step.pauses * 20000);
      const int error = pthread_mutex_timedlock(&mutexes[step.first], &limit);
      CHECK(error == 0 || error == ETIMEDOUT);
      if (error == 0) {
        enter(step.first, step.pauses);
        leave(step.first);
      }
      break;
    }
    case Step::kRead:
      CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
      CHECK(writers == 0);
      ++readers;
      pause_for(step.pauses);
      --readers;
      CHECK(pthread_rwlock_unlock(&rwlock) == 0);
      break;
    case Step::kWrite:
      CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
      CHECK(writers == 0 && readers == 0);
      ++writers;
      pause_for(step.pauses);
      --writers;
      CHECK(pthread_rwlock_unlock(&rwlock) == 0);
      break;
    case Step::kSemaphore:
      CHECK(sem_wait(&semaphore) == 0);
      CHECK(++in_semaphore <= semaphore_count);
      pause_for(step.pauses);
      --in_semaphore;
      CHECK(sem_post(&semaphore) == 0);
      break;
    case Step::kRecursive:
      CHECK(pthread_mutex_lock(&recursive) == 0);
      CHECK(pthread_mutex_lock(&recursive) == 0);
      CHECK(inside_recursive == 0);
      inside_recursive = 1;
      pause_for(step.pauses);
      inside_recursive = 0;
      CHECK(pthread_mutex_unlock(&recursive) == 0);
      CHECK(pthread_mutex_unlock(&recursive) == 0);
      break;
    case Step::kYield:
      pause_for(step.pauses);
      break;
    case Step::kSleep:
      usleep(step.pauses * 1000);
      break;
  }
}

// Everybody but the leader waits until the stage is reached; each then passes the signal on.
void wait_for_stage(int number, bool leads, bool broadcast) {
  CHECK(pthread_mutex_lock(&stage_mutex) == 0);
  if (leads) stage = number;
  while (stage < number) CHECK(pthread_cond_wait(&stage_conds[number - 1], &stage_mutex) == 0);
  if (!broadcast) {
    CHECK(pthread_cond_signal(&stage_conds[number - 1]) == 0);
  } else if (leads) {
    CHECK(pthread_cond_broadcast(&stage_conds[number - 1]) == 0);
  }
  CHECK(pthread_mutex_unlock(&stage_mutex) == 0);
}

void* worker(void* argument) {
  const auto me = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  for (std::size_t number = 0; number < phases.size(); ++number) {
    const Phase& phase = phases[number];
    for (const Step& step : phase.steps[static_cast<std::size_t>(me)]) run(step);
    switch (phase.end) {
      case Phase::kNone:
        break;
      case Phase::kBarrier:
        pthread_barrier_wait(&barrier);
        break;
      case Phase::kBroadcast:
      case Phase::kSignals:
        wait_for_stage(static_cast<int>(number) + 1, me == phase.leader,
                       phase.end == Phase::kBroadcast);
        break;
    }
  }
  return argument;
}

void generate(unsigned seed) {
  std::minstd_rand random(seed * 2654435761u + 1);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  thread_count = 2 + below(5);
  semaphore_count = 1 + below(2);
  phases.resize(static_cast<std::size_t>(1 + below(kMostPhases)));
  for (Phase& phase : phases) {
    phase.end = static_cast<Phase::End>(below(4));
    phase.leader = below(thread_count);
    phase.steps.resize(static_cast<std::size_t>(thread_count));
    for (auto& steps : phase.steps) {
      steps.resize(static_cast<std::size_t>(below(6)));
      for (Step& step : steps) {
        step.kind = static_cast<Step::Kind>(below(9));
        step.first = below(kLocks);
        step.last = step.first + below(kLocks - step.first);
        step.pauses = below(4);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  generate(argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 1);
  for (auto& cond : stage_conds) pthread_cond_init(&cond, nullptr);
  for (auto& mutex : mutexes) pthread_mutex_init(&mutex, nullptr);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &attributes);
  sem_init(&semaphore, 0, static_cast<unsigned>(semaphore_count));
  pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(thread_count));
  run_threads(thread_count, worker);
  return done();
}
