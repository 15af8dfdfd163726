#!/bin/bash
# What `heddle run --detect avio` costs, end to end, next to ThreadSanitizer, in one run.
#
#   avio_run.sh HEDDLE FOLDER [REPEAT] [KERNEL…]
#
# FOLDER holds kernel_NAME.native, .tsan and .heddle (`ninja heddle_bench_kernels`). Numbers are CPU
# time (user and system, of the program and of the detector) as a ratio to the native program's, the
# least of REPEAT runs; the last line is the geometric mean. THREADS (2) and SIZE apply to all. A run
# that fails, or of which nothing was recorded, ends it with status 1.
set -u -o pipefail
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

fail() {
  echo "avio_run.sh: $*" >&2
  exit 1
}

# least COMMAND…: the least CPU time of all runs, in seconds
least() {
  for ((i = 0; i < repeat; ++i)); do
    { time "$@" >/dev/null 2>&1 || fail "failed: $*" 2>&3; } 2>&1
  done 3>&2 | awk '{ t = $1 + $2; if (NR == 1 || t < best) best = t } END { printf "%.3f", best }'
}

# Every kernel shares what its threads do with the main thread: if nothing is found, nothing was seen.
check_recorded() {
  local report
  report=$("$heddle" run -q --json --detect avio -- "$folder/kernel_$1.heddle" $threads --quick \
    2>&1) || fail "failed: $heddle run … kernel_$1.heddle"
  grep -q '"detectors"' <<<"$report" || fail "nothing was recorded of kernel_$1.heddle"
}

for name in "${kernels[@]}"; do check_recorded "$name"; done
printf '%-10s %9s %8s %8s\n' kernel native tsan heddle
for name in "${kernels[@]}"; do
  native=$(least "$folder/kernel_$name.native" $threads ${SIZE:-}) || exit 1
  tsan=$(least "$folder/kernel_$name.tsan" $threads ${SIZE:-}) || exit 1
  ours=$(least "$heddle" run -q --detect avio -- "$folder/kernel_$name.heddle" $threads ${SIZE:-}) || exit 1
  echo "$name $native $tsan $ours"
done | awk '{
    printf "%-10s %7.3f s %8.1f %8.1f\n", $1, $2, $3 / $2, $4 / $2; fflush()
    tsan += log($3 / $2); ours += log($4 / $2); ++n
  } END { if (n) printf "%-10s %9s %8.1f %8.1f\n", "mean", "", exp(tsan / n), exp(ours / n) }'
