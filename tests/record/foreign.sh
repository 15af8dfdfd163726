# Programs, runtimes and traces that do not belong together say so in one line.
expect 0 "$heddle" record -o true.heddle -- /bin/true
one_line
complains "was not built with heddle-cc or heddle-c++"
# Of accesses that were not seen there is no verdict, in words or as a status; of the end there is.
cat >locked.c <<'C'
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x;
void* add(void* unused) {
  pthread_mutex_lock(&m);
  ++x;
  pthread_mutex_unlock(&m);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, add, 0);
  add(0);
  pthread_join(thread, 0);
  return x == 2 ? 0 : 1;
}
C
expect 0 clang-19 -c locked.c -o locked.o
expect 0 "$build/bin/heddle-cc" -pthread locked.o -o locked  # has the runtime, and nothing else
expect 0 timeout 300 "$heddle" run -- ./locked
one_line
complains "was not built with heddle-cc or heddle-c++"
expect 2 timeout 300 "$heddle" run --fail-on new -- ./locked
complains "no access was seen"
expect 0 timeout 300 "$heddle" run --detect outcome --fail-on new -- ./locked
complains "nothing found by outcome"
expect 127 "$heddle" record -o x.heddle -- ./no-such-program
one_line
complains "no-such-program"
echo text >text
expect 126 "$heddle" record -o x.heddle -- ./text
one_line

# A unit of another version: the program runs, unrecorded.
cat >unit.c <<'C'
#include <stdint.h>
struct heddle_unit { uint32_t version, flags; const void* p[13]; } __attribute__((aligned(8)));
static const char name[] = "old.c";
void __heddle_register(const void*);
int x;
int main(void) {
  static uint64_t unit[16];
  ((uint32_t*)unit)[0] = 999;
  unit[12] = (uint64_t)name;
  __heddle_register(unit);
  x = 3;
  return 7;
}
C
expect 0 "$build/bin/heddle-cc" unit.c -o unit
expect 7 timeout 300 "$heddle" record -q -o unit.heddle -- ./unit
one_line
complains "interface version 999"
complains "rebuild the program"

# A runtime of another version at the collector's door.
cat >visitor.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char* path = strstr(getenv("HEDDLE_OPTIONS"), "collector=") + 10;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  address.sun_path[strcspn(address.sun_path, ":")] = 0;
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(s, (void*)&address, sizeof address)) return 1;
  struct { uint64_t magic; uint32_t version, pid; } hello = {0x6c646465682d6d68ull, 999, 1};
  if (argc > 1) hello.magic = 1;
  int fd = memfd_create("x", 0);
  struct iovec data = {&hello, sizeof hello};
  char control[CMSG_SPACE(sizeof(int))] = {0};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(s, &message, 0) != sizeof hello) return 2;
  char answer = 9;
  if (read(s, &answer, 1) != 1) return 3;
  return answer == 0 ? 0 : 4;
}
C
expect 0 clang-19 visitor.c -o visitor
expect 0 timeout 300 "$heddle" record -o visitor.heddle -- ./visitor
complains "interface version 999"
expect 0 timeout 300 "$heddle" record -o visitor.heddle -- ./visitor stranger
complains "not from a program built with heddle-cc"

# A socket that nobody listens at any more.
echo 'int x; int main(void) { x = 1; return 5; }' >small.c
expect 0 "$build/bin/heddle-cc" small.c -o small
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("stale.socket")'
export HEDDLE_OPTIONS=collector=stale.socket
expect 5 ./small
one_line
complains "nobody collects at stale.socket"
export HEDDLE_OPTIONS=collector=missing.socket
expect 5 ./small
one_line
unset HEDDLE_OPTIONS

# A trace of a later version of the format.
expect 5 "$heddle" record -q -o small.heddle -- ./small
for offset in 8 9 10 11; do
  cp small.heddle later.heddle
  printf '\x63' | dd of=later.heddle bs=1 seek=$offset conv=notrunc status=none
  status=0
  "$heddle" stats later.heddle >"$out" 2>"$err" || status=$?
  [ $status = 2 ] && grep -q version "$err" && found=yes
done
[ "${found:-no}" = yes ] || fail "no byte of the header says the version"
