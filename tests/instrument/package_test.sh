#!/bin/sh
# Installs the compilers into an empty place, builds a project there with find_package(heddle), once by
# heddle_instrument and once with heddle-cc and heddle-c++ as its compilers, and runs it.
#   package_test.sh BUILD_FOLDER PROJECT_FOLDER
set -eu
build=$1 project=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" --component compilers > "$work/install.log"

fail() { echo "package_test: $1" >&2; exit 1; }

check() {
  "$1/shop" || fail "$1/shop failed"
  readelf -d "$1/shop" | grep -q 'NEEDED.*libheddle_rt.so' || fail "no runtime in $1/shop"
  readelf -d "$1/shop" | grep -q "$work/prefix" || fail "the runtime of $1/shop is not the installed one"
  readelf -S "$1/shop" | grep -q heddle_catalog || fail "no descriptors in $1/shop"
  readelf -S "$1/libstore.so" | grep -q heddle_catalog || fail "no descriptors in $1/libstore.so"
}

cmake -S "$project" -B "$work/a" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER=clang-19 \
  -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_BUILD_TYPE=Release > "$work/a.log" 2>&1 ||
  { cat "$work/a.log"; fail "configuring failed"; }
cmake --build "$work/a" > "$work/a.log" 2>&1 || { cat "$work/a.log"; fail "building failed"; }
check "$work/a"
nm "$work/a/libplain.a" | grep -q __heddle && fail "plain was instrumented"

cmake -S "$project" -B "$work/b" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_COMPILER="$work/prefix/bin/heddle-cc" \
  -DCMAKE_CXX_COMPILER="$work/prefix/bin/heddle-c++" > "$work/b.log" 2>&1 ||
  { cat "$work/b.log"; fail "configuring with the wrappers failed"; }
cmake --build "$work/b" > "$work/b.log" 2>&1 || { cat "$work/b.log"; fail "building with the wrappers failed"; }
grep -qi warning "$work/b.log" && fail "warnings: $(grep -i warning "$work/b.log")"
check "$work/b"

if command -v gcc > /dev/null; then
  cmake -S "$project" -B "$work/c" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER=gcc \
    -DCMAKE_CXX_COMPILER=g++ > "$work/c.log" 2>&1 && fail "gcc was accepted"
  grep -q 'needs clang 19' "$work/c.log" || fail "gcc was refused without saying why"
fi
echo ok
