# fork and exec: every process of the program has a trace of its own.
cat >family.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int in_parent, in_child, in_new;
static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "new")) {
    in_new = 1;
    return 4;
  }
  in_parent = 1;
  pid_t child = fork();
  if (child == 0) {
    in_child = 1;
    _exit(3);
  }
  if (wait_for(child) != 3) return 1;
  child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "new", (char*)NULL);
    _exit(1);
  }
  if (wait_for(child) != 4) return 2;
  child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  if (wait_for(child) != 0) return 3;
  if (system("exit 6") >> 8 != 6) return 4;
  if (argc > 1 && !strcmp(argv[1], "become")) {
    execl("/proc/self/exe", argv[0], "new", (char*)NULL);
    return 5;
  }
  return 0;
}
C
expect 0 "$build/bin/heddle-cc" -O1 family.c -o family
expect 0 timeout 300 "$heddle" record -o family.heddle -- ./family
expect 0 "$heddle" show family.heddle
grep -q ' w .*in_parent' "$out" || fail "the parent's write"
grep -q ' w .*in_child' "$out" && fail "the child's write is in the parent's trace"
tail -1 "$out" | grep -q 'exit 0' || fail "the parent's end"
children=0 news=0
for trace in family.heddle.*; do
  expect 0 "$heddle" show "$trace"
  if grep -q ' w .*in_child' "$out"; then
    children=$((children + 1))
    tail -1 "$out" | grep -q 'exit 3' || fail "the child's end"
  fi
  if grep -q ' w .*in_new' "$out"; then news=$((news + 1)); fi
done
[ $children = 1 ] || fail "$children traces of the forked child"
[ $news = 1 ] || fail "$news traces of the new program"

rm family.heddle*
expect 4 timeout 300 "$heddle" record -o family.heddle -- ./family become
expect 0 "$heddle" stats family.heddle
found=no
for trace in family.heddle.*; do
  expect 0 "$heddle" show "$trace"
  if grep -q ' w .*in_new' "$out"; then found=yes; fi
done
[ $found = yes ] || fail "the program that took the place of the first has no trace"
