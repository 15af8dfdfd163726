#!/bin/bash
# How fast AVIO is on recorded traces of the kernels: million accesses per second, detector only.
#
#   avio_traces.sh HEDDLE BENCH FOLDER [REPEAT] [KERNEL…]
#
# BENCH is heddle_bench_avio; FOLDER holds kernel_NAME.heddle (`ninja heddle_bench_kernels`). Each
# kernel is recorded with 4 and with 64 threads (THREADS="4 64"), with so much work that a trace has
# one to forty million accesses: of a shorter one (SIZE=--quick) most of the time is that a new
# detector touches its memory for the first time. The best of REPEAT (9) counts. The last line is of
# made-up traces.
set -u
heddle=$1 bench=$2 folder=$3 repeat=${4:-9}
shift 4 2>/dev/null || shift $#
kernels=("$@")
if [ ${#kernels[@]} -eq 0 ]; then
  for path in "$folder"/kernel_*.heddle; do
    name=${path##*/kernel_}
    kernels+=("${name%.heddle}")
  done
fi
traces=$(mktemp -d) || exit 1
trap 'rm -rf "$traces"' EXIT

# best TRACE-OR-FILTER…: the most million accesses per second of all repetitions
best() {
  "$bench" "$@" --benchmark_repetitions="$repeat" --benchmark_min_time=0.05 2>/dev/null |
    sed -n '/_mean\|_median\|_stddev\|_cv/d; s/.*items_per_second=\([0-9.]*\)\([Mk]\).*/\1 \2/p' |
    awk '{ v = $2 == "M" ? $1 : $1 / 1000; if (v > m) m = v } END { printf " %8.1f", m }'
}

declare -A sizes=([barnes]=300 [bfs]=20000 [fft]=65536 [hashmap]=100000 [list]=5000 [lu]=192
  [queue]=20000 [radix]=300000 [stencil]=160 [words]=20000)

printf '%-10s' kernel
printf ' %8s' ${THREADS:-4 64}
echo
for name in "${kernels[@]}"; do
  printf '%-10s' "$name"
  for threads in ${THREADS:-4 64}; do
    trace=$traces/$name.$threads.heddle
    "$heddle" record -q --level accesses -o "$trace" -- \
      "$folder/kernel_$name.heddle" "$threads" ${SIZE:-${sizes[$name]:---quick}} >/dev/null 2>&1
    best "$trace"
    rm -f "$trace"
  done
  echo
done
printf '%-10s' made-up
for threads in ${THREADS:-4 64}; do best --benchmark_filter="made-up/$threads\$"; done
echo
