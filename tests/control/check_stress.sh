#!/bin/sh
# check_stress.sh PROGRAM FIRST COUNT
#
# COUNT random programs (`stress SEED`), each under a random and a pct schedule: none may end as a
# deadlock, hang or fail, and none may say anything.
set -u
program=$1 first=$2 count=$3
failures=0
for seed in $(seq "$first" $((first + count - 1))); do
  for strategy in random pct; do
    text=$(HEDDLE_OPTIONS="level=off:timeout=120:schedule=$strategy:switch_every=3:seed=$seed" \
      timeout 300 "$program" "$seed" 2>&1)
    status=$?
    if [ $status -ne 0 ] || [ "$text" != ok ]; then
      echo "FAILED: stress $seed under $strategy, seed $seed: status $status"
      echo "$text"
      failures=$((failures + 1))
    fi
  done
done
[ $failures -eq 0 ] || exit 1
echo passed
