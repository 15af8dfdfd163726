#include "runtime/server.h"

#include "runtime/options.h"
#include "runtime/raw.h"
#include "runtime/real.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

constexpr size_t kLongest = 8192;

bool send_number(int fd, int number) {
  return raw_write(fd, &number, sizeof number) == static_cast<long>(sizeof number);
}

bool has_other_threads() {
  const long fd = raw_syscall(SYS_open, as_long("/proc/self/task"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char entries[512];
  long got;
  unsigned count = 0;
  while ((got = raw_syscall(SYS_getdents64, fd, as_long(entries), sizeof entries)) > 0) {
    for (long at = 0; at < got;) {
      uint16_t length;
      memcpy(&length, entries + at + 16, sizeof length);
      const char* name = entries + at + 19;
      if (name[0] != '.') ++count;
      at += length;
    }
  }
  raw_close(static_cast<int>(fd));
  return count != 1;
}

// What this process executes later inherits the run's options, and no server.
void become_run(int fd, const char* text) {
  raw_close(fd);
  parse_options(text);
  const char* before = getenv("HEDDLE_OPTIONS");
  char all[2 * kLongest];
  const size_t first = strlen(before);
  const size_t second = strlen(text);
  static const char kNoServer[] = ":server_fd=0";
  if (first + second + sizeof kNoServer + 1 > sizeof all) return;
  memcpy(all, before, first);
  all[first] = ':';
  memcpy(all + first + 1, text, second);
  memcpy(all + first + 1 + second, kNoServer, sizeof kNoServer);
  setenv("HEDDLE_OPTIONS", all, 1);
}

}  // namespace

void serve_runs() {
  const int fd = static_cast<int>(rt_option(server_fd));
  if (fd == 0) return;
  if (has_other_threads() || !send_number(fd, static_cast<int>(raw_getpid()))) raw_exit_group(0);
  for (;;) {
    char text[kLongest];
    const long got = raw_syscall(SYS_read, fd, as_long(text), sizeof text - 1);
    if (got <= 0) raw_exit_group(0);
    text[got] = '\0';
    const pid_t child = REAL(fork)();
    if (child == 0) {
      become_run(fd, text);
      return;
    }
    if (child < 0 || !send_number(fd, child)) raw_exit_group(0);
    int status = 0;
    raw_syscall(SYS_wait4, child, as_long(&status), 0, 0);
    if (!send_number(fd, status)) raw_exit_group(0);
  }
}

}  // namespace heddle::rt
