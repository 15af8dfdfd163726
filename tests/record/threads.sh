# 200 threads at once, thousands over time, names.
cat >many.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long counter;
static void* together(void* argument) {
  if (argument == NULL) pthread_setname_np(pthread_self(), "first-one");
  pthread_barrier_wait(&all);
  pthread_mutex_lock(&lock);
  counter = counter + 1;
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void* alone(void* argument) {
  pthread_mutex_lock(&lock);
  counter = counter + 1;
  pthread_mutex_unlock(&lock);
  return argument;
}
int main(void) {
  enum { kAtOnce = 200, kOverTime = 3000 };
  pthread_t threads[kAtOnce];
  pthread_barrier_init(&all, NULL, kAtOnce);
  for (long i = 0; i < kAtOnce; ++i) pthread_create(&threads[i], NULL, together, (void*)i);
  for (int i = 0; i < kAtOnce; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kOverTime; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, alone, NULL)) return 2;
    if (i % 2) pthread_join(thread, NULL); else pthread_detach(thread);
  }
  pthread_mutex_lock(&lock);
  long now = counter;
  pthread_mutex_unlock(&lock);
  return now >= kAtOnce + kOverTime / 2 ? 0 : 1;
}
C
expect 0 "$build/bin/heddle-cc" -O1 -pthread many.c -o many
expect 0 timeout 300 "$heddle" record --level accesses -o many.heddle -- ./many
expect 0 "$heddle" stats many.heddle
says "first-one"
grep -qE '^threads +3,?201' "$out" || fail "not 3201 threads: $(grep ^threads "$out")"
grep -qE '^ +fork +3,?200' "$out" || fail "not every thread's creation is there"
