#!/bin/sh
# check_gdb.sh HEDDLE HEDDLE-C++
#
# heddle replay --gdb --finding stops before the very access that completes a finding: its thread,
# its line, and, of the many times that the thread is there, the right one. Where accesses are no
# scheduling points, and where they are.
set -u
heddle=$1 compiler=$2
command -v gdb >/dev/null || {
  echo "skipped: gdb is not installed"
  exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
cat >table.cc <<'END'
#include <pthread.h>
static int table[20];
static void* fill(void*) {
  for (int i = 0; i < 10; ++i) {
    table[i] = i;
  }
  return nullptr;
}
static void* touch(void*) {
  for (int i = 7; i < 15; ++i) {
    if (i == 8 || i == 9) continue;
    table[i] = i;
  }
  return nullptr;
}
int main() {
  pthread_t a, b;
  pthread_create(&a, nullptr, fill, nullptr);
  pthread_create(&b, nullptr, touch, nullptr);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
}
END
"$compiler" -g -O0 -std=c++20 table.cc -o table -pthread || exit 1
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# stops OPTIONS…: in the run that they make, at the race on table[7]
stops() {
  timeout 300 "$heddle" run --detect race --json -o report.json --schedule-output run.schedule "$@" -- ./table 2>err
  timeout 300 "$heddle" replay --finding 1 run.schedule >place 2>&1 || fail "$*: $(cat place)"
  thread=$(sed -n 's/.*: thread \([0-9]*\) before .*/\1/p' place)
  line=$(sed -n 's/.*table.cc:\([0-9]*\)$/\1/p' place)
  # The second access of the race, as the report has it.
  grep -q "\"line\": $line\b" report.json || fail "$*: line $line is not in the report"
  echo 'print i' >commands
  timeout 300 "$heddle" replay --gdb --finding 1 run.schedule <commands >out 2>&1
  if ! grep -q "heddle: thread $thread stops here" out || ! grep -q "at table.cc:$line" out ||
    ! grep -q '\$1 = 7' out; then
    fail "$*: not in thread $thread at table.cc:$line with i = 7"
    cat place out
  fi
}
stops --schedule fifo
[ "$(cat place)" = "heddle: data race on \`table[]\`: thread 2 before $directory/table.cc:12" ] ||
  fail "the place is $(cat place)"
stops --seed 4
stops --seed 5

# What a detector does not find cannot be stopped at.
timeout 300 "$heddle" replay --gdb --finding 2 run.schedule >out 2>&1 && fail "a finding that is not there"
grep -q 'no finding 2: race,outcome found 1 in this run' out || fail "$(cat out)"

# A deadlock: where the run ends.
cat >stuck.cc <<'END'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main() {
  pthread_mutex_lock(&m);
  pthread_mutex_lock(&m);
}
END
"$compiler" -g -O0 stuck.cc -o stuck -pthread || exit 1
timeout 300 "$heddle" run --schedule-output stuck.schedule -- ./stuck >out 2>&1
echo backtrace >commands
timeout 300 "$heddle" replay --gdb --finding 1 stuck.schedule <commands >out 2>&1
grep -q 'deadlock.*: where the run ends' out && grep -q 'in main () at stuck.cc:5' out || {
  fail "deadlock"
  cat out
}
[ $failures -eq 0 ] || exit 1
echo passed
