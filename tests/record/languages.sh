# Every way to synchronise, in programs that are instrumented and recorded; C and C++, before main
# and after it. The programs check themselves and print "ok" (tests/control/programs).
cc=$build/bin/heddle-cc cxx=$build/bin/heddle-c++
for source in "$traces"/{mutex,rwlock,spinlock,condition,timed,semaphore,barrier,c11,futex,detach,robust,cancel,signals,stdio,pipes}.c; do
  name=$(basename "$source" .c)
  expect 0 "$cc" -O1 -w -I"$traces" "$source" -o "$name" -pthread
  expect 0 timeout 300 "$heddle" record -q --level accesses -o "$name.heddle" -- "./$name"
  says ok
  expect 0 "$heddle" stats "$name.heddle"
  says outcome
done
for source in "$traces"/{once,cxx20,destructors}.cc; do
  name=$(basename "$source" .cc)
  expect 0 "$cxx" -std=c++20 -O2 -w -I"$traces" "$source" -o "$name" -pthread
  expect 0 timeout 300 "$heddle" record -q -o "$name.heddle" -- "./$name"
  says ok
  expect 0 "$heddle" stats "$name.heddle"
  says outcome
done
ldd ./mutex | grep -q 'libstdc++' && fail "a C program needs the C++ library"

# Before main, after main, and in destructors of thread-local objects.
cat >around.cc <<'C'
#include <cstdlib>
#include <thread>
int in_constructor, in_destructor, in_local, in_early, in_late, in_handler;
struct Global {
  Global() { in_constructor = 1; }
  ~Global() { in_destructor = 1; }
} global;
struct Local {
  int touched = 0;
  ~Local() { in_local = in_local + 1; }
};
thread_local Local local;
__attribute__((constructor(102))) void early() { in_early = 1; }
__attribute__((destructor(102))) void late() { in_late = 1; }
int main() {
  std::atexit([] { in_handler = 1; });
  local.touched = 1;
  std::thread([] { local.touched = 2; }).join();
}
C
for level in -O0 -O2; do
  expect 0 "$cxx" -std=c++20 $level around.cc -o around -pthread
  expect 0 timeout 300 "$heddle" record -q -o around.heddle -- ./around
  expect 0 "$heddle" show around.heddle
  for name in constructor destructor early late handler; do
    [ "$(grep -cE " w +in_$name " "$out")" = 1 ] || fail "$level: in_$name"
  done
  [ "$(grep -cE ' w +in_local ' "$out")" = 2 ] || fail "$level: in_local"
done
