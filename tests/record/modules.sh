# Static and shared libraries and modules that are loaded, unloaded and loaded again.
echo 'int in_archive; int archive(int n) { return in_archive += n; }' >archive.c
echo 'int in_library; int library(int n) { return in_library += n; }' >library.c
echo 'int in_module; int module(int n) { return in_module += n; }' >module.c
echo 'int in_second; int module(int n) { return in_second += 2 * n; }' >second.c
echo 'static int in_plain; int plain(int n) { return in_plain += n; }' >plain.c
cat >main.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
int archive(int), library(int), plain(int);
static int load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW);
  if (!handle) return -1;
  int (*module)(int) = (int (*)(int))dlsym(handle, "module");
  int result = module(3);
  if (dlclose(handle)) return -1;
  return result;
}
static void* work(void* argument) { library(1); archive(1); plain(1); return argument; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  for (int i = 0; i < 3; ++i) {
    if (load("./module.so") != 3 || load("./second.so") != 6) return 1;
  }
  return library(1) + archive(1) + plain(1) == 6 ? 0 : 2;
}
C
cc=$build/bin/heddle-cc
expect 0 "$cc" -O2 -c archive.c -o archive.o
expect 0 ar rcs libarchive.a archive.o
expect 0 "$cc" -O2 -fPIC -shared library.c -o library.so
expect 0 "$cc" -O2 -fPIC -shared module.c -o module.so
expect 0 "$cc" -O2 -fPIC -shared second.c -o second.so
expect 0 clang-19 -O2 -c plain.c -o plain.o
expect 0 "$cc" -O2 main.c libarchive.a ./library.so plain.o -pthread -o main
expect 0 timeout 300 "$heddle" record -o main.heddle -- ./main
expect 0 "$heddle" show main.heddle
for pair in archive:2 library:2 module:3 second:3; do
  seen=$(grep -cE " w +in_${pair%:*} " "$out")
  [ "$seen" = "${pair#*:}" ] || fail "$seen writes of in_${pair%:*}"
done
grep -q in_plain "$out" && fail "an access of code that was not instrumented"

# The same with every sled turned into a jump: modules come and go, and come back in the same place.
expect 0 timeout 300 "$heddle" record --level flow --schedule random --points all -o sleds.heddle -- \
  ./main
expect 0 "$heddle" show sleds.heddle
for pair in archive:2 library:2 module:3 second:3; do
  seen=$(grep -cE " w +in_${pair%:*} " "$out")
  [ "$seen" = "${pair#*:}" ] || fail "$seen writes of in_${pair%:*} with sleds"
done
true
