#!/bin/bash
# learned.sh HEDDLE-C++ HEDDLE EXAMPLES bugs|fixed|benign
#
# bugs     what passing runs taught, held against a failing schedule: the bug comes first, and its
#          P, R and I are the lines that the source marks as such
# fixed    the corrected programs stay silent under schedules that were not learned from
# benign   flag synchronisation and a hand-made barrier are learned away within ten runs
set -u
compiler=$1 heddle=$2 examples=$3 theme=$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failures=0

fail() {
  echo "FAILED: $1"
  [ $# -gt 1 ] && cat "$2"
  failures=$((failures + 1))
}

# build NAME
build() {
  "$compiler" -std=c++20 -O1 -g -pthread -o "$1" "$examples/$1.cc" || { fail "$1: build"; exit 1; }
}

# learn NAME RUNS: from seeds that nothing else here uses
learn() {
  timeout 300 "$heddle" learn -n "$2" --seed 1000 -o "$1.inv" -- "./$1" >learn.out 2>&1 ||
    fail "$1: learn" learn.out
}

# record_seed NAME SEED
record_seed() {
  timeout 300 "$heddle" record -q --level accesses --schedule random --points shared --seed "$2" \
    -o "$1.heddle" -- "./$1" >record.out 2>&1
}

# silent NAME SEED…
silent() {
  local name=$1 seed
  shift
  for seed in "$@"; do
    record_seed "$name" "$seed"
    "$heddle" check "$name.heddle" --detect avio --invariants "$name.inv" >check.out 2>&1 ||
      fail "$name: seed $seed is not silent" check.out
  done
}

# marked NAME ROLE: the line of ROLE in the first finding is marked with it in the source
marked() {
  local line
  line=$(sed -n "s/^.* $2  $1\.cc:\([0-9]*\) .*/\1/p" check.out | head -1)
  sed -n "${line:-0}p" "$examples/$1.cc" 2>sed.out | grep -qE "// heddle:.* $2( |\$)" ||
    fail "$1: $2 is not the access that the source marks" check.out
}

case $theme in
bugs)
  for name in bank apache1 apache2 mozilla mysql1 mysql2; do
    build $name
    learn $name 30
    grep -q "failed and taught nothing" learn.out || fail "$name: no failing run was left out" learn.out
    timeout 300 "$heddle" try -n 200 --until-failure --keep 1 -o kept -- ./$name >try.out 2>&1
    schedule=$(ls kept.*.schedule 2>/dev/null | head -1)
    [ -n "$schedule" ] || { fail "$name: no failing schedule" try.out; continue; }
    timeout 300 "$heddle" record -q --level accesses --schedule "$schedule" -o $name.heddle \
      -- ./$name >record.out 2>&1
    rm -f kept.*.schedule
    "$heddle" check $name.heddle --detect avio --invariants $name.inv >check.out 2>&1
    [ $? -eq 1 ] || { fail "$name: not reported" check.out; continue; }
    for role in P R I; do marked $name $role; done
    grep -q "never split in .* passing run" check.out || fail "$name: no word of learning" check.out
  done
  ;;
fixed)
  for name in bank apache1 apache2 mozilla mysql1 mysql2 mysql3; do
    build ${name}_fixed
    learn ${name}_fixed 20
    grep -q "failed" learn.out && fail "${name}_fixed: a run failed" learn.out
    silent ${name}_fixed 1 2 3
  done
  ;;
benign)
  for name in flag_sync hand_made_barrier; do
    build $name
    learn $name 10
    silent $name 1 2 3 4 5
  done
  ;;
esac
exit $((failures != 0))
