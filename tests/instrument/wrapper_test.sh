#!/bin/sh
# The wrappers behave as clang does: the same outputs, the same errors, nothing said on success.
#   wrapper_test.sh FOLDER_OF_THE_WRAPPERS
set -eu
cc=$1/heddle-cc cxx=$1/heddle-c++
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "wrapper_test: $1" >&2; exit 1; }

# Runs a command that must succeed without a word.
quiet() {
  "$@" > out 2>&1 || { cat out; fail "failed: $*"; }
  [ ! -s out ] || { cat out; fail "said something: $*"; }
}
instrumented() { readelf -S "$1" | grep -q heddle_catalog || fail "$1 is not instrumented"; }

cat > add.c <<'END'
#include "add.h"
int total;
int add(int n) { total += n; return total; }
END
echo 'int add(int n);' > add.h
cat > main.c <<'END'
#include "add.h"
int main(void) { return add(2) + add(3) == 7 ? 0 : 1; }
END
cat > main.cc <<'END'
extern "C" int add(int n);
#include <stdexcept>
int main() { try { if (add(2) == 2) throw std::runtime_error("x"); } catch (std::exception&) { return 0; } return 1; }
END

# Compile, link, both.
quiet "$cc" -c add.c
instrumented add.o
quiet "$cc" -O2 -c main.c -o main.o
quiet "$cc" main.o add.o -o linked
./linked || fail "linked"
quiet "$cc" -O1 -Wall -Wextra -Werror main.c add.c -o both
./both || fail "both"
quiet "$cxx" -O2 -static-libgcc main.cc add.o -o cpp
./cpp || fail "cpp"
quiet "$cxx" -O2 -static-libgcc -static-libstdc++ main.cc add.o -o static_cpp
./static_cpp || fail "static_cpp"
quiet "$cxx" -O2 -ffunction-sections -Wl,--gc-sections main.cc add.o -o collected
./collected || fail "collected"

# A header that is compiled first.
echo 'extern "C" int add(int n);' > first.h
quiet "$cxx" -O2 -x c++-header first.h -o first.h.pch
echo 'int main() { return add(2) == 2 ? 0 : 1; }' > second.cc
quiet "$cxx" -O2 -include-pch first.h.pch second.cc add.o -o precompiled
./precompiled || fail "precompiled"

# Archives, shared libraries, modules.
quiet ar rcs libadd.a add.o
quiet "$cc" main.c -L. -ladd -o archive
./archive || fail "archive"
quiet "$cc" -fPIC -shared add.c -o libadd.so -Wl,-z,defs
instrumented libadd.so
quiet "$cc" main.c ./libadd.so -o shared
LD_LIBRARY_PATH=. ./shared || fail "shared"
cat > module.c <<'END'
#include <dlfcn.h>
int main(int c, char** v) {
  void* handle = dlopen(v[1], RTLD_NOW);
  int (*add)(int) = handle ? (int (*)(int))dlsym(handle, "add") : 0;
  if (!add || add(4) != 4) return 1;
  return dlclose(handle);
}
END
quiet "$cc" module.c -o module -ldl
./module ./libadd.so || fail "module"

# Other outputs.
quiet "$cc" -S add.c -o add.s
grep -q total add.s || fail "-S"
"$cc" -E add.c > add.i
clang-19 -E add.c | cmp -s - add.i || fail "-E differs from clang's"
quiet "$cc" -c add.i -o from_i.o
instrumented from_i.o
[ "$("$cc" -MM add.c)" = "$(clang-19 -MM add.c)" ] || fail "-MM differs from clang's"
quiet "$cc" -MMD -MF add.d -c add.c
grep -q add.h add.d || fail "-MMD"
quiet "$cc" -fsyntax-only add.c
quiet "$cc" -r add.o main.o -o relocatable.o
quiet "$cc" relocatable.o -o relocated
./relocated || fail "relocated"
[ "$("$cc" --version)" = "$(clang-19 --version)" ] || fail "--version"
[ "$("$cc" -dumpmachine)" = "$(clang-19 -dumpmachine)" ] || fail "-dumpmachine"
[ "$("$cc" -print-prog-name=ld)" = "$(clang-19 -print-prog-name=ld)" ] || fail "-print-prog-name"

# Input from elsewhere.
echo 'int main() { return 0; }' | "$cxx" -x c++ - -o from_stdin
./from_stdin || fail "from_stdin"
echo '-O1 -c "add.c" -o from_response.o' > args.rsp
quiet "$cc" @args.rsp
instrumented from_response.o

# Debug information unless it was refused.
readelf -S add.o | grep -q debug_info || fail "no debug information"
quiet "$cc" -g0 -c add.c -o bare.o
readelf -S bare.o | grep -q debug_info && fail "-g0 was not respected"

# Errors are clang's.
echo 'int broken(' > broken.c
clang-19 -c broken.c 2> expected && fail "clang compiled broken.c"
"$cc" -c broken.c 2> got && fail "broken.c compiled"
cmp -s expected got || fail "another error message than clang's"
clang-19 main.o 2> expected && fail "clang linked main.o alone"
"$cc" main.o 2> got && fail "main.o linked alone"
grep -q 'undefined reference to `add' got || fail "another link error than clang's"
"$cc" -static main.c add.c -o static 2> got && fail "-static linked"
[ "$(wc -l < got)" = 1 ] || fail "-static is not explained in one line"

# ccache in front.
if command -v ccache > /dev/null; then
  CCACHE_DIR=$work/cache CCACHE_DISABLE= quiet ccache "$cc" -O2 -c add.c -o cached1.o
  CCACHE_DIR=$work/cache CCACHE_DISABLE= quiet ccache "$cc" -O2 -c add.c -o cached2.o
  cmp -s cached1.o cached2.o || fail "ccache"
  instrumented cached2.o
fi

# A symbolic link to the wrapper works from anywhere.
ln -s "$cc" my-cc
quiet ./my-cc -c add.c -o linked_wrapper.o
instrumented linked_wrapper.o

# What configure scripts do.
cat > conftest.c <<'END'
char pthread_create(void);
int main(void) { return pthread_create == 0; }
END
"$cc" -w conftest.c -o conftest -lpthread > out 2>&1 || { cat out; fail "conftest"; }
echo ok
