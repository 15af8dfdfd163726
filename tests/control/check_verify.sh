#!/bin/sh
# check_verify.sh HEDDLE HEDDLE-C++
#
# heddle record --verify notices what the schedule does not decide, and names it.
set -u
heddle=$1 compiler=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0

cat >program.cc <<'PROGRAM'
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <sys/random.h>
#include <sys/time.h>
#include <thread>

volatile int counter;
volatile sig_atomic_t alarms;

static unsigned rounds(const char* mode) {
  unsigned number = 0;
  if (std::strcmp(mode, "random") == 0) return getrandom(&number, 2, 0) == 2 ? number : 0;
  if (std::strcmp(mode, "device") == 0) return std::random_device()() & 0xffff;
  if (std::strcmp(mode, "clock") == 0) {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_nsec & 0xffff;
  }
  if (std::strcmp(mode, "address") == 0) {
    return (reinterpret_cast<std::uintptr_t>(&number) >> 12) & 0xffff;
  }
  if (std::strcmp(mode, "outside") == 0) return static_cast<unsigned>(std::getchar()) & 0xffff;
  if (std::strcmp(mode, "signal") == 0) {
    std::signal(SIGALRM, [](int) { alarms = 1; });
    const itimerval soon = {{}, {0, 5000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    while (!alarms) ++number;
    return number & 0xffff;
  }
  return 10;  // "nothing", or the time of the virtual clock
}

int main(int, char** arguments) {
  unsigned count = rounds(arguments[1]);
  if (std::strcmp(arguments[1], "virtual") == 0) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    count = static_cast<unsigned>(now.tv_nsec) & 0xff;
  }
  std::thread other([] { for (int i = 0; i < 10; ++i) counter = i; });
  for (unsigned i = 0; i < count; ++i) counter = 1;
  other.join();
}
PROGRAM
"$compiler" -std=c++20 -O1 program.cc -o program -pthread || exit 1

# verify MODE STATUS TEXT: with what is on standard input
verify() {
  timeout 300 "$heddle" record --verify --schedule random --points shared --seed 3 -q -o trace \
    -- ./program "$1" >out 2>&1
  status=$?
  if [ $status -ne "$2" ] || ! grep -q "$3" out; then
    echo "FAILED: $1: status $status, wanted $2 and \`$3\`"
    cat out
    failures=$((failures + 1))
  fi
}

verify nothing 0 "the same events" </dev/null
verify virtual 0 "the same events" </dev/null
verify random 3 "used: random" </dev/null
verify device 3 "used: random" </dev/null
verify clock 3 "used: a clock that is not virtual" </dev/null
verify address 3 "depends on addresses" </dev/null
verify signal 3 "used: .*signals from outside" </dev/null
printf 'x' | verify outside 3 "used: input from outside"
[ $failures -eq 0 ] || exit 1
echo passed
