#!/bin/sh
# check_program.sh PROGRAM RUNS MODE
#
# Runs a test program of the scheduler, which checks itself and prints "ok":
#   - RUNS times with one seed: the schedules must be the same, byte for byte;
#   - with RUNS seeds and three strategies: it must end, correctly;
#   - a schedule of the last ones, replayed, must not diverge.
# HEDDLE_TEST_POINTS is the option `points`. MODE free leaves out what the kernel's timing has a say in: only correctness counts then.
set -u
program=$1 runs=$2 mode=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# run OPTIONS…: the program's own output must be "ok", and nothing else
run() {
  HEDDLE_OPTIONS="level=off:points=${HEDDLE_TEST_POINTS:-sync}:$1" timeout 300 "$program" >"$directory/out" 2>"$directory/err"
  status=$?
  if [ $status -ne 0 ] || [ "$(cat "$directory/out")" != ok ]; then
    fail "$1: status $status"
    cat "$directory/out" "$directory/err"
    return 1
  fi
  if [ "$mode" != free ] && [ -s "$directory/err" ]; then
    fail "$1: said something"
    cat "$directory/err"
    return 1
  fi
}

for i in $(seq "$runs"); do
  run "schedule=random:seed=5:schedule_out=$directory/same.$i" || break
done
if [ "$mode" != free ]; then
  for i in $(seq 2 "$runs"); do
    cmp -s "$directory/same.1" "$directory/same.$i" || fail "run $i of seed 5 differs from run 1"
  done
fi

for i in $(seq "$runs"); do
  case $((i % 3)) in
    0) strategy=fifo ;;
    1) strategy=random ;;
    2) strategy=pct ;;
  esac
  run "schedule=$strategy:seed=$i:schedule_out=$directory/seed.$i" || continue
  if [ "$mode" != free ] && [ $((i % 5)) -eq 0 ]; then
    run "schedule=replay:schedule_in=$directory/seed.$i" || fail "seed $i does not replay"
  fi
done

[ "$failures" -eq 0 ] || exit 1
echo passed
