# Loops that are recorded as a whole: the trace is the one that a record in every round gives, also of loops that end in a
# fault. The plugin's side is in tests/instrument/loops_test.cc. All memory is in fixed places.

# both PROGRAM STATUS [ARGUMENT…]: records it both ways, expects the same accesses, keeps them in `accesses`; and the
# same segments, too, at the flow level
both() {
  local program=$1 status=$2
  shift 2
  for loops in 1 0; do
    HEDDLE_OPTIONS=loops=$loops expect "$status" "$heddle" record --level flow -o $loops.heddle -- "./$program" "$@"
    expect 0 "$heddle" show -k r,w,segment $loops.heddle
    sed -E 's/0x[0-9a-f]{9,}/stack/' "$out" >segments.$loops
  done
  same segments.1 segments.0
  grep -q segment segments.1 || fail "the flow level has no segments"
  for loops in 1 0; do
    HEDDLE_OPTIONS=loops=$loops expect "$status" "$heddle" record --level accesses -o $loops.heddle -- "./$program" "$@"
    expect 0 "$heddle" show -k r,w $loops.heddle
    sed -E 's/0x[0-9a-f]{9,}/stack/' "$out" >accesses.$loops
  done
  same accesses.1 accesses.0
  mv accesses.1 accesses
}
count() { [ "$(grep -c -- "$1" accesses)" = "$2" ] || fail "$(grep -c -- "$1" accesses) times \`$1\`, not $2"; }

cat >threads.cc <<'C'
#include <mutex>
#include <thread>
#include <vector>
static double a[1000], b[1000], total;
static long grid[40][50];
static int order[20000];
static short tally[256];
static std::mutex lock;
__attribute__((noinline)) void add(int n) {
  for (int i = 0; i < n; ++i) b[i] += a[i];
}
__attribute__((noinline)) double sum(int n) {
  double s = 0;
  for (int i = n - 1; i >= 0; --i) s += b[i];
  return s;
}
__attribute__((noinline)) void columns(int n) {
  for (int j = 0; j < 50; ++j)
    for (int i = 1; i < n; ++i) grid[i][j] = grid[i - 1][j] + 1;
}
__attribute__((noinline)) void shuffle(int n, int from) {
  for (int i = 0; i < n; ++i) order[i] = i * 77 % 256 ^ from;
}
__attribute__((noinline)) void count(int n) {
  for (int i = 0; i < n; ++i) ++tally[order[i]];
}
int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      add(900);
      columns(30);
      shuffle(20000, t);
      count(20000);
      std::lock_guard hold(lock);
      total += sum(100 * t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}
C
for level in -O0 -O1 -O2; do
  expect 0 "$build/bin/heddle-c++" $level -no-pie -pthread threads.cc -o threads
  both threads 0
  count 'in add(int)' 8100
  count 'in columns(int)' 8700
  count 'in sum(int)' 300
  count 'in count(int)' 180000
done

# A schedule does not depend on what is recorded, nor on how.
for seed in 1 2 3; do
  HEDDLE_OPTIONS=level=off:schedule=random:switch_every=2:seed=$seed:schedule_out=$PWD/made expect 0 ./threads
  for how in level=off:loops=0 level=accesses:output=$PWD/x.heddle level=flow:output=$PWD/y.heddle; do
    HEDDLE_OPTIONS=$how:schedule=replay:schedule_in=$PWD/made:schedule_out=$PWD/again expect 0 ./threads
    ! grep -q diverge "$err" || fail "the replay diverged with $how"
    [ "$(grep ^end made)" = "$(grep ^end again)" ] || fail "another run with $how: $(grep ^end again)"
  done
done

cat >faults.c <<'C'
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
static long sum, after;
static sigjmp_buf back;
static char* const base = (char*)0x10000000;
static void map(int first, int second) {
  mmap(base, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  mprotect(base, 4096, first);
  mprotect(base + 4096, 4096, second);
}
__attribute__((noinline)) void read_up(const long* p, int n) {
  long s = 0;
  for (int i = 0; i < n; ++i) s += p[i];
  sum = s;
}
__attribute__((noinline)) void read_down(const short* p, int n) {
  long s = 0;
  for (int i = 0; i < n; ++i) s += p[-i];
  sum = s;
}
__attribute__((noinline)) void write_up(int* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = p[i] + 1;
}
__attribute__((noinline)) void gather(const int* index, const long* p, int n) {
  long s = 0;
  for (int i = 0; i < n; ++i) s += p[index[i]];
  sum = s;
}
static int many[40000];
static long gathered[64], handled;
static void handle(int signal) { (void)signal; ++handled; }
static void jump(int signal) { (void)signal; siglongjmp(back, 1); }
static void repair(int signal) { (void)signal; mprotect(base, 8192, PROT_READ | PROT_WRITE); }
static void die(int signal) { (void)signal; kill(getpid(), SIGKILL); }
int main(int argc, char** argv) {
  const char* what = argv[1];
  struct sigaction action;
  memset(&action, 0, sizeof action);
  if (!strcmp(what, "jump")) action.sa_handler = jump;
  if (!strcmp(what, "repair")) action.sa_handler = repair;
  if (!strcmp(what, "die")) action.sa_handler = die;
  if (action.sa_handler) sigaction(SIGSEGV, &action, NULL);
  if (!strcmp(what, "up")) map(PROT_READ, PROT_NONE), read_up((long*)base + 400, 300);
  if (!strcmp(what, "down")) map(PROT_NONE, PROT_READ), read_down((short*)(base + 4096) + 200, 300);
  if (!strcmp(what, "null")) read_up(argc > 5 ? &sum : NULL, 300);
  if (!strcmp(what, "write")) map(PROT_READ | PROT_WRITE, PROT_READ), write_up((int*)base + 900, 300);
  if (!strcmp(what, "jump")) {
    map(PROT_READ, PROT_NONE);
    if (sigsetjmp(back, 1) == 0) read_up((long*)base + 400, 300);
  }
  if (!strcmp(what, "repair")) map(PROT_READ, PROT_NONE), read_up((long*)base + 400, 300);
  if (!strcmp(what, "die")) map(PROT_READ, PROT_NONE), read_up((long*)base + 400, 300);
  if (!strcmp(what, "gather")) {
    for (int i = 0; i < 300; ++i) many[i] = i * 7 % 300;
    many[250] = 600;
    map(PROT_READ, PROT_NONE), gather(many, (long*)base, 300);
  }
  if (!strcmp(what, "gather-null")) gather(many, argc > 5 ? &sum : NULL, 300);
  if (!strcmp(what, "signals")) {
    struct itimerval soon = {{0, 200}, {0, 200}};
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 40000; ++i) many[i] = i & 63;
    for (int i = 0; i < 20; ++i) gather(many, gathered, 40000);
    memset(&soon, 0, sizeof soon);
    setitimer(ITIMER_REAL, &soon, NULL);
  }
  after = 1;
  return 0;
}
C
for level in -O0 -O2; do
  expect 0 "$build/bin/heddle-cc" $level -no-pie faults.c -o faults
  both faults 139 up
  count 'in read_up' 113
  both faults 139 down
  count 'in read_down' 202
  both faults 0 repair
  count 'in read_up' 301
  both faults 0 jump
  count 'in read_up' 113
  count ' after ' 1

  # Read, then write: the read of the first element that cannot be written has happened.
  both faults 139 write
  count 'r .*in write_up' 125
  count 'w .*in write_up' 125

  # Through a null pointer (a segment's record cannot tell address 0 from a word that was not written).
  expect 139 "$heddle" record --level accesses -o null.heddle -- ./faults null
  expect 0 "$heddle" show -k r,w null.heddle
  [ "$(grep -c 'in read_up' "$out")" = 1 ] || fail "the access that failed is not there, or others are"

  # The addresses that data decides are known up to the one that failed.
  both faults 139 gather
  count 'in gather' 502
  expect 139 "$heddle" record --level accesses -o null.heddle -- ./faults gather-null
  expect 0 "$heddle" show -k r,w null.heddle
  [ "$(grep -c 'in gather' "$out")" = 2 ] || fail "the access that failed is not there, or others are"

  # Killed in the middle: nothing is known of the loop, and nothing is claimed.
  HEDDLE_OPTIONS=loops=1 expect 137 "$heddle" record --level accesses -o killed.heddle -- ./faults die
  expect 0 "$heddle" show -k r,w killed.heddle
  ! grep -q 'in read_up' "$out" || fail "a loop that was killed claims accesses"
done

# Signals are handled between the records of a long loop, and nothing of it is lost.
expect 0 "$build/bin/heddle-cc" -O2 -no-pie faults.c -o faults
expect 0 "$heddle" record --level accesses -o signals.heddle -- ./faults signals
expect 0 "$heddle" show -k r signals.heddle
[ "$(grep -c 'in gather' "$out")" = 1600000 ] || fail "$(grep -c 'in gather' "$out") accesses, not 1600000"
