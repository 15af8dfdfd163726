#!/bin/bash
# What `heddle run --detect avio` costs, end to end, next to ThreadSanitizer, in one run.
#
#   avio_run.sh HEDDLE FOLDER [REPEAT] [KERNEL…]
#
# FOLDER holds kernel_NAME.native, .tsan and .heddle (`ninja heddle_bench_kernels`). Numbers are CPU
# time (user and system, of the program and of the detector) as a ratio to the native program's, the
# least of REPEAT runs; the last line is the geometric mean. THREADS (2) and SIZE apply to all.
set -u
heddle=$1 folder=$2 repeat=${3:-3}
shift 3 2>/dev/null || shift $#
kernels=("$@")
if [ ${#kernels[@]} -eq 0 ]; then
  for path in "$folder"/kernel_*.heddle; do
    name=${path##*/kernel_}
    kernels+=("${name%.heddle}")
  done
fi
threads=${THREADS:-2}
TIMEFORMAT='%U %S'

# least COMMAND…: the least CPU time of all runs, in seconds
least() {
  for ((i = 0; i < repeat; ++i)); do
    { time "$@" >/dev/null 2>&1; } 2>&1
  done | awk '{ t = $1 + $2; if (NR == 1 || t < best) best = t } END { printf "%.3f", best }'
}

printf '%-10s %9s %8s %8s\n' kernel native tsan heddle
for name in "${kernels[@]}"; do
  native=$(least "$folder/kernel_$name.native" $threads ${SIZE:-})
  tsan=$(least "$folder/kernel_$name.tsan" $threads ${SIZE:-})
  ours=$(least "$heddle" run -q --detect avio -- "$folder/kernel_$name.heddle" $threads ${SIZE:-})
  echo "$name $native $tsan $ours"
done | awk '{
    printf "%-10s %7.3f s %8.1f %8.1f\n", $1, $2, $3 / $2, $4 / $2; fflush()
    tsan += log($3 / $2); ours += log($4 / $2); ++n
  } END { if (n) printf "%-10s %9s %8.1f %8.1f\n", "mean", "", exp(tsan / n), exp(ours / n) }'
