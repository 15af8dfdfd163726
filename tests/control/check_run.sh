#!/bin/sh
# check_run.sh HEDDLE HEDDLE-C++ EXAMPLES
#
# heddle run says about a run what heddle check says about its recording, finding by finding, on several
# examples, detectors and seeds; it keeps the program's status and output, unless asked otherwise.
set -u
heddle=$1 compiler=$2 examples=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0

fail() {
  echo "FAILED: $1"
  [ $# -gt 1 ] && cat "$2"
  failures=$((failures + 1))
}

# check WHAT STATUS WANTED [TEXT FILE]
check() {
  [ "$2" -eq "$3" ] || fail "$1: status $2, wanted $3" "${5:-/dev/null}"
  [ $# -le 3 ] || grep -q "$4" "$5" || fail "$1: does not say \`$4\`" "$5"
}

# The findings of a report, without what ASLR moves.
findings() {
  sed -n '/^  "findings"/,$p' "$1" | grep -v '"address"\|"replay"' | sed 's/0x[0-9a-f]\{8,\}/ADDRESS/g'
}

build() {
  "$compiler" -std=c++20 -g -O1 "$examples/$1.cc" -o "$(basename "$1")" -pthread || exit 1
}

# same PROGRAM DETECTORS LEVEL SEED
same() {
  timeout 300 "$heddle" record -q --level "$3" --schedule random --points shared --seed "$4" \
    -o trace -- "./$1" >/dev/null 2>&1
  recorded=$?
  timeout 300 "$heddle" check trace --detect "$2" --json >checked
  checked=$?
  timeout 300 "$heddle" run --detect "$2" --fail-on none --schedule random --points shared \
    --seed "$4" --json -o attached -- "./$1" >/dev/null 2>&1
  check "run of $1 keeps the status" $? $recorded
  findings checked >a
  findings attached >b
  cmp -s a b || { fail "$1, $2, seed $4: run and check differ"; diff a b | head -20; }
  found=$((found + checked))
}

build avio/bank
build avio/mysql1
build svd/dequeue_fill
for seed in 1 2 3 4 5; do
  found=0
  same bank avio,lockset,race accesses $seed
  same mysql1 race,avio accesses $seed
  same dequeue_fill svd flow $seed
done
[ $found -gt 0 ] || fail "nothing was found at all"

# The level follows from the detectors; what it adds changes no finding of those who do not need it.
timeout 300 "$heddle" run --detect svd-offline --json -o report -- ./dequeue_fill >/dev/null 2>&1
check "a detector that needs flow" $? 0

cat >status.cc <<'PROGRAM'
#include <cstdio>
#include <thread>
int counter;
int main(int argc, char**) {
  std::thread other([] { ++counter; });
  ++counter;
  other.join();
  std::puts("its own output");
  return argc == 1 ? 5 : 0;
}
PROGRAM
"$compiler" -std=c++20 -g -O1 status.cc -o status -pthread || exit 1
timeout 300 "$heddle" run --detect race -- ./status >out 2>report
check "the program's status" $? 5 "its own output" out
grep -q 'data race.*counter' report || fail "the report is on standard error" report
timeout 300 "$heddle" run --detect race --fail-on new -- ./status >out 2>report
check "--fail-on new" $? 1
timeout 300 "$heddle" run --detect race --fail-on new --write-baseline known -- ./status x >out 2>&1
check "--write-baseline" $? 1
timeout 300 "$heddle" run --detect race --fail-on new --baseline known -- ./status x >out 2>report
check "--baseline" $? 0 "1 already in the baseline" report
timeout 300 "$heddle" run --detect race --fail-on any --baseline known -- ./status x >out 2>report
check "--fail-on any" $? 1
echo 'race:counter' >suppressed
timeout 300 "$heddle" run --detect race --fail-on any --suppressions suppressed -- ./status x >out 2>report
check "--suppressions" $? 0 "1 suppressed" report
timeout 300 "$heddle" run --detect race --schedule-output s --schedule random -- ./status x >out 2>&1
check "--schedule-output" $? 0
timeout 300 "$heddle" run --detect race --schedule s -- ./status x >out 2>report
check "--schedule FILE" $? 0 "data race" report

timeout 300 "$heddle" run --detect nonsense -- ./status >out 2>report
check "no such detector" $? 2 "there is no detector" report
[ ! -s out ] || fail "the program ran although the options were wrong" out
timeout 300 "$heddle" run -- ./nothing >out 2>report
check "no such program" $? 127 "cannot run ./nothing" report
timeout 300 "$heddle" run -- /bin/true >out 2>report
check "a program that was not built for it" $? 0 "not built with heddle-cc" report
timeout 300 "$heddle" run --invariants nothing --detect avio -- ./status >out 2>report
check "no such file" $? 2 "nothing" report
timeout 300 "$heddle" run --detect race --json -o /dev/full -- ./status >out 2>report
check "a full disk" $? 2 "cannot write" report
timeout 300 "$heddle" check trace >/dev/full 2>report
check "check on a full disk" $? 2 "cannot write" report

[ $failures -eq 0 ] || exit 1
echo passed
