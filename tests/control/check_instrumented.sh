#!/bin/sh
# check_instrumented.sh HEDDLE-C++ HEDDLE SOURCES…
#
# Programs built with heddle-c++, at -O0 and -O2: they end, correctly, under every strategy; one seed
# gives one schedule; and a recorded run, replayed and recorded again, has the same events.
set -u
compiler=$1 heddle=$2
shift 2
here=$(dirname "$(readlink -f "$0")")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0
for source in "$@"; do
  for level in O0 O2; do
    program=$directory/$(basename "$source" .cc).$level
    "$compiler" -std=c++20 -g -$level "$source" -o "$program" -pthread || exit 1
    HEDDLE_TEST_POINTS=shared "$here/check_program.sh" "$program" 12 same >out 2>&1 ||
      { echo "FAILED: $program"; cat out; failures=$((failures + 1)); }
    for seed in 1 2 3; do
      timeout 300 "$heddle" record --verify --schedule random --points shared --seed $seed \
        -o trace -- "$program" >out 2>&1
      status=$?
      if [ $status -ne 0 ] || ! grep -q 'the same events' out; then
        echo "FAILED: $program: seed $seed does not replay (status $status)"
        cat out
        failures=$((failures + 1))
      fi
    done
  done
done
[ $failures -eq 0 ] || exit 1
echo passed
