#!/bin/sh
# check_verbs.sh HEDDLE PROGRAMS
#
# heddle try finds the deadlock of control_deadlock and keeps a schedule; heddle replay follows it,
# every time, notices an edited schedule and another program, and stops in gdb where it ends.
set -u
heddle=$1 programs=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0

# check WHAT STATUS WANTED [TEXT FILE]
check() {
  if [ "$2" -ne "$3" ] || { [ $# -gt 3 ] && ! grep -q "$4" "$5"; }; then
    echo "FAILED: $1: status $2, wanted $3 ${4:+and \`$4\`}"
    [ $# -gt 3 ] && cat "$5"
    failures=$((failures + 1))
  fi
}

timeout 300 "$heddle" try -n 100 --switch-every 3 --keep 2 --junit junit.xml -o kept -- \
  "$programs/control_deadlock" >out 2>&1
check "try" $? 1 "deadlocked" out
grep -q '<failure type="deadlocked"' junit.xml || check "junit" 1 0
[ "$(grep -c '<testcase' junit.xml)" -eq 100 ] || check "100 test cases" 1 0
[ "$(ls kept.*.schedule | wc -l)" -eq 2 ] || check "two schedules kept" 1 0
schedule=$(ls kept.*.schedule | head -1)

timeout 300 "$heddle" try -n 30 -q -- "$programs/control_mutex" >out 2>&1
check "try of a program without fault" $? 0
timeout 300 "$heddle" try --until-failure -n 1000 --switch-every 3 -- "$programs/control_deadlock" >out 2>&1
check "try --until-failure" $? 1 "deadlocked  " out
timeout 300 "$heddle" try -n 5 -- /bin/true >out 2>&1
check "try of a program without the runtime" $? 2 "does not run under control" out
timeout 300 "$heddle" try -n 5 --preload -- /bin/true >out 2>&1
check "try --preload" $? 0 "passed *5" out
timeout 300 "$heddle" try -n 5 -- ./nothing >out 2>&1
check "try of nothing" $? 2 "cannot run ./nothing" out

timeout 300 "$heddle" replay -n 20 "$schedule" >out 2>&1
check "replay" $? 66 "the same 20 of 20 times" out
grep -q "held by thread" out || check "the deadlock is explained" 1 0
timeout 300 "$heddle" replay "$schedule" -- "$programs/control_deadlock" >out 2>&1
check "replay of a command" $? 66 "stayed on the schedule: deadlocked" out
sed '/^at /s/ [a-z]* / barrier /' "$schedule" >edited.schedule
timeout 300 "$heddle" replay edited.schedule >out 2>&1
check "replay of an edited schedule" $? 3 "edited.schedule:[0-9]*: thread .*another kind" out
timeout 300 "$heddle" replay "$schedule" -- "$programs/control_mutex" >out 2>&1
check "replay with another program" $? 3 "another build" out
echo nonsense >bad.schedule
timeout 300 "$heddle" replay bad.schedule >out 2>&1
check "replay of nonsense" $? 2 "not a schedule" out

if command -v gdb >/dev/null; then
  echo 'thread apply all backtrace 20' >commands
  timeout 300 "$heddle" replay --gdb "$schedule" <commands >out 2>&1
  grep -q SIGTRAP out && grep -q 'in worker (' out || check "replay --gdb" 1 0 "SIGTRAP" out
  timeout 300 "$heddle" replay --at 1.2 "$schedule" <commands >out 2>&1
  grep -q SIGTRAP out && grep -q 'in worker (' out || check "replay --at" 1 0 "SIGTRAP" out
fi
[ $failures -eq 0 ] || exit 1
echo passed
