#!/bin/sh
# check_end.sh PROGRAM OPTIONS STATUS TEXT…
#
# Under OPTIONS the program must end with STATUS in time (tried with 40 seeds until it
# does), and say every TEXT.
set -u
program=$1 options=$2 wanted=$3
shift 3
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for seed in $(seq 40); do
  HEDDLE_OPTIONS="level=off:$options:seed=$seed" timeout 300 "$program" >"$output" 2>&1
  status=$?
  [ $status -eq "$wanted" ] && break
  [ $status -eq 0 ] || break
done
if [ $status -ne "$wanted" ]; then
  echo "FAILED: status $status, not $wanted"
  cat "$output"
  exit 1
fi
for text in "$@"; do
  if ! grep -q "$text" "$output"; then
    echo "FAILED: does not say \`$text\`"
    cat "$output"
    exit 1
  fi
done
# The same seed again: the same end.
HEDDLE_OPTIONS="level=off:$options:seed=$seed" timeout 300 "$program" >"$output" 2>&1
[ $? -eq "$wanted" ] || { echo "FAILED: seed $seed ends differently the second time"; exit 1; }
echo passed
