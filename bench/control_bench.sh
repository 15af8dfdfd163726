#!/bin/sh
# control_bench.sh BUILD [RUNS]
#
# What control costs, as ratios within one run:
#   - the kernels under the schedule fifo with nothing recorded, against native (CPU time, one
#     processor, two threads, least of RUNS): instrumented, where the inline code writes into a scratch
#     block, and the native build with the runtime preloaded, where synchronisation alone is controlled;
#   - a switch: two threads that do nothing but yield to each other, random switching at every shared
#     access;
#   - runs per second of `heddle try`, and of a shell loop of native runs.
set -eu
build=$(readlink -f "$1") runs=${2:-3}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source=$(dirname "$0")

# least_cpu COMMAND…: the least user + system time of the runs, in milliseconds
least_cpu() {
  best=
  for _ in $(seq "$runs"); do
    used=$(python3 - "$@" <<'PYTHON'
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round((usage.ru_utime + usage.ru_stime) * 1000))
PYTHON
)
    if [ -z "$best" ] || [ "$used" -lt "$best" ]; then best=$used; fi
  done
  echo "$best"
}

printf '%-10s %10s %14s %6s %11s %6s\n' kernel 'native ms' 'instrumented' '' preloaded ''
for kernel in radix lu fft stencil barnes hashmap queue list bfs words; do
  "$build/bin/heddle-c++" -std=c++20 -O2 "$source/kernels/$kernel.cc" -o "$directory/$kernel" -pthread
  clang++-19 -std=c++20 -O2 "$source/kernels/$kernel.cc" -o "$directory/$kernel.native" -pthread
  native=$(least_cpu taskset -c 0 "$directory/$kernel.native")
  control=$(HEDDLE_OPTIONS=level=off least_cpu taskset -c 0 "$directory/$kernel")
  preloaded=$(HEDDLE_OPTIONS=level=off LD_PRELOAD="$build/src/runtime/libheddle_rt.so" \
    least_cpu taskset -c 0 "$directory/$kernel.native")
  echo "$kernel $native $control $preloaded" >>"$directory/ratios"
  awk -v k="$kernel" -v n="$native" -v c="$control" -v p="$preloaded" \
    'BEGIN { printf "%-10s %10d %14d %6.2f %11d %6.2f\n", k, n, c, c / n, p, p / n }'
done
awk '{ i += log($3 / $2); p += log($4 / $2) }
  END { printf "geometric mean of the ratios: instrumented %.2f, preloaded %.2f\n\n", exp(i / NR), exp(p / NR) }' \
  "$directory/ratios"

cat >"$directory/switch.cc" <<'PROGRAM'
#include <cstdlib>
#include <thread>
volatile int shared;
int main(int, char** arguments) {
  const int rounds = std::atoi(arguments[1]);
  const auto body = [&] { for (int i = 0; i < rounds; ++i) shared = i; };
  std::thread a(body), b(body);
  a.join();
  b.join();
}
PROGRAM
"$build/bin/heddle-c++" -std=c++20 -O2 "$directory/switch.cc" -o "$directory/switch" -pthread
few=$(HEDDLE_OPTIONS=level=off:schedule=random:switch_every=1 least_cpu "$directory/switch" 1000)
many=$(HEDDLE_OPTIONS=level=off:schedule=random:switch_every=1 least_cpu "$directory/switch" 101000)
awk -v f="$few" -v m="$many" \
  'BEGIN { printf "a switch at every shared access: %.2f us each\n\n", (m - f) * 1000 / 200000 }'

cat >"$directory/two.cc" <<'PROGRAM'
#include <pthread.h>
static void* nothing(void* argument) { return argument; }
int main() {
  pthread_t a, b;
  pthread_create(&a, nullptr, nothing, nullptr);
  pthread_create(&b, nullptr, nothing, nullptr);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
}
PROGRAM
"$build/bin/heddle-c++" -O2 "$directory/two.cc" -o "$directory/two" -pthread
clang++-19 -O2 "$directory/two.cc" -o "$directory/two.native" -pthread
echo "two threads that do nothing:"
"$build/src/cli/heddle" try -n 2000 -- "$directory/two" | head -1
printf 'without fork server: '
"$build/src/cli/heddle" try -n 500 --no-fork-server -- "$directory/two" | head -1
start=$(date +%s%N)
for _ in $(seq 500); do "$directory/two.native"; done
end=$(date +%s%N)
awk -v t=$((end - start)) 'BEGIN { printf "a shell loop of native runs: %.0f per second\n", 500 / (t / 1e9) }'

echo
echo "examples:"
for example in avio/bank svd/log_writer silent/work_stealing; do
  name=$(basename "$example")
  "$build/bin/heddle-c++" -std=c++20 -g -O1 "$source/../examples/$example.cc" -o "$directory/$name" -pthread
  printf '%-14s ' "$name"
  (cd "$directory" && "$build/src/cli/heddle" try -n 300 -- "./$name") | head -1
done
