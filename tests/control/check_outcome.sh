#!/bin/sh
# check_outcome.sh HEDDLE HEDDLE-C++
#
# Runs that do not end by themselves are findings of `run` and of `check`: deadlocks with every
# thread's place, what it waits for and who holds it since when; hangs with stacks; crashes and failed
# assertions with message, place and stack.
set -u
heddle=$1 compiler=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0

cat >stuck.cc <<'PROGRAM'
#include <cassert>
#include <cstdlib>
#include <mutex>
#include <thread>

std::mutex accounts, ledger;
int* volatile pointer;

static void transfer() {
  std::lock_guard one(accounts);  // line 10
  std::this_thread::yield();
  std::lock_guard two(ledger);
}

static void audit() {
  std::lock_guard one(ledger);  // line 16
  std::this_thread::yield();
  std::lock_guard two(accounts);
}

static void deadlocks() {
  std::thread a(transfer), b(audit);
  a.join();
  b.join();
}

static void spins() {
  while (pointer == nullptr) std::this_thread::yield();
}

static void faults() {
  *pointer = 1;  // line 32
}

static void asserts() {
  assert(pointer != nullptr);  // line 36
}

static void aborts() {
  std::abort();  // line 40
}

int main(int, char** arguments) {
  void (*const bodies[])() = {deadlocks, spins, faults, asserts, aborts};
  std::thread(bodies[std::atoi(arguments[1])]).join();
}
PROGRAM
"$compiler" -std=c++20 -g -O1 stuck.cc -o stuck -pthread || exit 1

# expect WHAT MODE STATUS OPTIONS TEXT…: of run, and of check on the recording
expect() {
  what=$1 mode=$2 status=$3 options=$4
  shift 4
  # shellcheck disable=SC2086
  timeout 300 "$heddle" run --detect outcome $options -o report -- ./stuck "$mode" >out 2>&1
  got=$?
  [ $got -eq "$status" ] || { echo "FAILED: $what: status $got"; cat out; failures=$((failures + 1)); }
  # shellcheck disable=SC2086
  timeout 300 "$heddle" record -q $options -o trace -- ./stuck "$mode" >out 2>&1
  timeout 300 "$heddle" check trace --detect outcome >checked
  [ $? -eq 1 ] || { echo "FAILED: $what: no finding of check"; failures=$((failures + 1)); }
  for text in "$@"; do
    for file in report checked; do
      grep -q -e "$text" $file && continue
      echo "FAILED: $what: $file does not say \`$text\`"
      cat $file
      failures=$((failures + 1))
    done
  done
}

seed=$(seq 50 | while read -r n; do
  HEDDLE_OPTIONS="level=off:schedule=random:switch_every=2:seed=$n" ./stuck 0 >/dev/null 2>&1
  [ $? -eq 66 ] && echo "$n" && break
done)
expect deadlock 0 66 "--schedule random --switch-every 2 --seed $seed" '^deadlock .*mutex – mutex' \
  'every thread waits for another' 'waits for the mutex ledger, held by thread' 'since stuck.cc:16' \
  'waits for the mutex accounts, held by thread' 'since stuck.cc:10' 'transfer *stuck.cc:12' \
  'audit *stuck.cc:18' 'waits for the end of thread' 'holding'
expect hang 1 67 '--timeout 1' '^hang' 'did not end within 1 seconds' 'spins'
expect fault 2 139 '' '^crash  SIGSEGV' 'stuck.cc:32' 'faults *stuck.cc:32'
expect assertion 3 134 '' '^crash  assertion' 'pointer != nullptr' '1  stuck.cc:36' 'asserts *stuck.cc:36'
expect abort 4 134 '' '^crash  SIGABRT' '1  stuck.cc:40' 'aborts *stuck.cc:40'
[ $failures -eq 0 ] || exit 1
echo passed
