#include "runtime/collector_link.h"

#include "abi/abi.h"
#include "runtime/options.h"
#include "runtime/raw.h"
#include "runtime/say.h"

#include <initializer_list>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

int connect_to(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) {
    say("the collector's socket path is too long (%s); the run is not recorded", path);
    return -1;
  }
  strcpy(address.sun_path, path);
  const long fd = raw_syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    say("cannot make a socket (error %ld); the run is not recorded", -fd);
    return -1;
  }
  const long connected = raw_syscall(SYS_connect, fd, as_long(&address), sizeof address);
  if (connected < 0) {
    say("nobody collects at %s (error %ld); the run is not recorded", path, -connected);
    raw_close(static_cast<int>(fd));
    return -1;
  }
  return static_cast<int>(fd);
}

// The command next to this library: in a build tree, and where `cmake --install` puts both.
bool find_command(char* out, size_t size) {
  if (rt_option(heddle)[0] != '\0') {
    format_text(out, size, "%s", rt_option(heddle));
    return raw_syscall(SYS_access, as_long(out), X_OK) == 0;
  }
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&connect_collector), &info) == 0) return false;
  char folder[PATH_MAX];
  format_text(folder, sizeof folder, "%s", info.dli_fname);
  char* slash = strrchr(folder, '/');
  if (slash == nullptr) return false;
  *slash = '\0';
  for (const char* place : {"/heddle", "/../bin/heddle", "/../../bin/heddle", "/../cli/heddle"}) {
    format_text(out, size, "%s%s", folder, place);
    if (raw_syscall(SYS_access, as_long(out), X_OK) == 0) return true;
  }
  return false;
}

void output_path(char* out, size_t size, bool forked) {
  if (rt_option(output)[0] != '\0') {
    const size_t length = format_text(out, size, "%s", rt_option(output));
    if (forked) format_text(out + length, size - length, ".%u", raw_getpid());
    return;
  }
  const char* name = strrchr(program_invocation_name, '/');
  format_text(out, size, "%s.%u.heddle", name != nullptr ? name + 1 : program_invocation_name,
              raw_getpid());
}

// In the grandchild: becomes the collector.
[[noreturn]] void become_collector(const char* command, const char* output, int socket_fd) {
  const int fd = 3;
  if (socket_fd != fd) raw_syscall(SYS_dup3, socket_fd, fd, 0);
  raw_syscall(SYS_close_range, fd + 1, ~0u, 0);
  const long nothing = raw_syscall(SYS_openat, AT_FDCWD, as_long("/dev/null"), O_RDWR);
  if (nothing >= 0) {
    raw_syscall(SYS_dup3, nothing, 0, 0);
    raw_syscall(SYS_dup3, nothing, 1, 0);
  }
  raw_syscall(SYS_setsid);  // an interrupt from the terminal is for the program
  const char* arguments[] = {"heddle", "collect", "--fd", "3", "-o", output, nullptr};
  // Nothing of the program's environment is for the collector but where to find its libraries.
  static char path[PATH_MAX] = "PATH=/usr/bin:/bin";
  const char* environment[] = {path, nullptr};
  raw_syscall(SYS_execve, as_long(command), as_long(arguments), as_long(environment));
  raw_exit_group(127);
}

// Twice forked, so that the program never sees a child it did not make.
int start_collector(bool forked) {
  char command[PATH_MAX];
  if (!find_command(command, sizeof command)) {
    say("cannot find the heddle command next to the runtime library; the run is not recorded "
        "(start it with `heddle record`, or set HEDDLE_OPTIONS=heddle=/path/to/heddle)");
    return -1;
  }
  char output[PATH_MAX];
  output_path(output, sizeof output, forked);
  int pair[2];
  const long made =
      raw_syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, as_long(pair));
  if (made < 0) {
    say("cannot make a socket (error %ld); the run is not recorded", -made);
    return -1;
  }
  // A full set of blocked signals keeps handlers of the program out of the two short-lived copies.
  uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, as_long(&all), as_long(&before), sizeof all);
  const long child = raw_syscall(SYS_fork);
  if (child == 0) {
    const long grandchild = raw_syscall(SYS_fork);
    if (grandchild == 0) {
      raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&before), 0, sizeof before);
      become_collector(command, output, pair[1]);
    }
    raw_exit_group(grandchild < 0 ? 1 : 0);
  }
  if (child > 0) {
    int status = 0;
    while (raw_syscall(SYS_wait4, child, as_long(&status), 0, 0) == -EINTR) continue;
  }
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&before), 0, sizeof before);
  raw_close(pair[1]);
  if (child < 0) {
    say("cannot start a collector (error %ld); the run is not recorded", -child);
    raw_close(pair[0]);
    return -1;
  }
  return pair[0];
}

bool send_hello(int socket_fd, int memory_fd) {
  heddle_hello hello = {};
  hello.magic = HEDDLE_SHARED_MAGIC;
  hello.abi_version = HEDDLE_ABI_VERSION;
  hello.pid = raw_getpid();
  iovec data = {&hello, sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &memory_fd, sizeof memory_fd);
  return raw_syscall(SYS_sendmsg, socket_fd, as_long(&message), MSG_NOSIGNAL) == sizeof hello;
}

}  // namespace

bool collector_welcomes(int socket_fd) {
  char answer = 0;
  long got;
  do {
    got = raw_syscall(SYS_read, socket_fd, as_long(&answer), 1);
  } while (got == -EINTR);
  if (got == 1 && answer == 1) return true;
  say("the collector did not take this program's recording; the run is not recorded");
  return false;
}

CollectorLink connect_collector(int memory_fd, bool forked) {
  CollectorLink link;
  const char* path = rt_option(collector);
  link.started_here = path[0] == '\0';
  link.socket_fd = link.started_here ? start_collector(forked) : connect_to(path);
  if (link.socket_fd < 0) return link;
  const bool sent = send_hello(link.socket_fd, memory_fd);
  if (sent && link.started_here) return link;
  if (!collector_welcomes(link.socket_fd)) {
    raw_close(link.socket_fd);
    link.socket_fd = -1;
  }
  return link;
}

}  // namespace heddle::rt
