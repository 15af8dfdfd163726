# However a program ends, its trace holds everything up to its last step, and says how it ended.
cat >ends.c <<'C'
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long counter;
int last;
static long limit = 40;
static const char* end;
static void* nowhere;

static void finish(void) {
  last = 42;
  if (!strcmp(end, "segv")) *(volatile int*)nowhere = 1;
  if (!strcmp(end, "abort")) abort();
  if (!strcmp(end, "_exit")) _exit(7);
  if (!strcmp(end, "quick_exit")) quick_exit(8);
  if (!strcmp(end, "exit")) exit(9);
  if (!strcmp(end, "assert")) assert(last == 43);
  if (!strcmp(end, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(end, "term")) kill(getpid(), SIGTERM);
}
static void* work(void* finisher) {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&lock);
    if (counter == limit && finisher) finish();
    if (counter < limit) counter = counter + 1;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}
int main(int argc, char** argv) {
  end = argv[1];
  if (argc > 2) limit = atol(argv[2]);
  pthread_t threads[2];
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 3;
}
C
expect 0 "$build/bin/heddle-cc" -O2 -pthread ends.c -o ends

# ended END STATUS OUTCOME [LIMIT]
ended() {
  expect "$2" timeout 300 "$heddle" record -o ends.heddle -- ./ends "$1" ${4:-40}
  expect 0 "$heddle" show ends.heddle
  grep -qE " outcome +$3" "$out" || fail "$1: the trace says: $(grep " outcome " "$out")"
  [ "$(grep -cE ' w +counter ' "$out")" = ${4:-40} ] || fail "$1: not every write is there"
  [ "$1" = return ] || grep -qE ' w +last ' "$out" || fail "$1: the last write is missing"
  rm ends.heddle
}
ended return 3 'exit 3'
ended exit 9 'exit 9'
ended _exit 7 'exit 7'
ended quick_exit 8 'exit 8'
ended segv 139 '.*(SIGSEGV|signal 11|11)'
ended abort 134 '.*(SIGABRT|signal 6|6)'
ended assert 134 '.*'
ended term 143 '.*(SIGTERM|signal 15|15)'
# Killed by nobody's leave: nothing that was written is lost, at whatever moment.
for moment in 1 2 39 311 1234; do
  ended kill 137 '.*(SIGKILL|signal 9|9)' $moment
done
