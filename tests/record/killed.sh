# kill -9 from outside, of the program and of the collector, at any moment.
cat >busy.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile long counter;
static void* work(void* rounds) {
  for (long i = 0; i < (long)rounds; ++i) {
    pthread_mutex_lock(&lock);
    counter = counter + 1;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}
int main(int argc, char** argv) {
  long rounds = argc > 2 ? 3000 : 1000000000;
  FILE* f = fopen(argv[1], "w");
  fprintf(f, "%d\n", (int)getpid());
  fclose(f);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, (void*)rounds);
  if (argc > 2) { struct timespec pause = {1, 0}; nanosleep(&pause, NULL); }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("%ld\n", counter);
}
C
expect 0 "$build/bin/heddle-cc" -O1 -pthread busy.c -o busy

for moment in 0.01 0.1 0.3; do
  rm -f pid
  timeout 150 "$heddle" record --level accesses -o busy.heddle -- ./busy pid >killed.out 2>killed.err &
  recorder=$!
  for i in $(seq 3000); do [ -s pid ] && break; sleep 0.05; done
  [ -s pid ] || fail "the program did not start"
  sleep $moment
  kill -9 "$(cat pid)"
  status=0
  wait $recorder || status=$?
  [ $status = 137 ] || fail "killed after $moment s: status $status"
  expect 0 "$heddle" stats busy.heddle
  says "outcome"
  expect 0 "$heddle" show --kind outcome busy.heddle
  grep -qE 'SIGKILL|9' "$out" || fail "the trace does not say that the program was killed"
done

# The collector dies: the program goes on to its own end. Where nobody fetches the status of orphans, it stays as a
# zombie.
lives() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }
rm -f pid
"$heddle" record -o lost.heddle -- ./busy pid short >program.out 2>program.err &
recorder=$!
for i in $(seq 3000); do [ -s pid ] && break; sleep 0.05; done
kill -9 $recorder
{ wait $recorder || true; } 2>/dev/null
for i in $(seq 3000); do lives "$(cat pid)" || break; sleep 0.1; done
lives "$(cat pid)" && { kill -9 "$(cat pid)"; fail "the program hangs without its collector"; }
[ "$(cat program.out)" = 6000 ] || fail "the program did not finish: $(cat program.out)"
