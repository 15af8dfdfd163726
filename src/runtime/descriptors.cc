#include "runtime/descriptors.h"

#include "runtime/raw.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

namespace heddle::rt {
namespace {

constexpr int kMostDescriptors = 65536;
bool g_internal[kMostDescriptors];

constexpr unsigned kMostEnds = 4096;
uint32_t g_ends[kMostEnds];  // hashes of connections of which one end was seen
unsigned g_end_count;

// One number for both ends of a loopback TCP connection; 0: not one.
uint32_t connection_of(int fd) {
  sockaddr_in local = {}, peer = {};
  socklen_t length = sizeof local;
  if (raw_syscall(SYS_getsockname, fd, as_long(&local), as_long(&length)) < 0) return 0;
  length = sizeof peer;
  if (raw_syscall(SYS_getpeername, fd, as_long(&peer), as_long(&length)) < 0) return 0;
  if (local.sin_family != AF_INET || peer.sin_family != AF_INET) return 0;
  const uint32_t a = local.sin_port, b = peer.sin_port;
  return a < b ? a << 16 | b : b << 16 | a;
}

// A Unix socket's peer is known by its process.
bool peer_is_this_process(int fd) {
  sockaddr_un local = {};
  socklen_t length = sizeof local;
  if (raw_syscall(SYS_getsockname, fd, as_long(&local), as_long(&length)) < 0) return false;
  if (local.sun_family != AF_UNIX) return false;
  ucred peer = {};
  length = sizeof peer;
  return raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, as_long(&peer),
                     as_long(&length)) == 0 &&
         peer.pid == static_cast<pid_t>(raw_getpid());
}

}  // namespace

bool descriptor_is_external(int fd) {
  return fd >= 0 && (fd >= kMostDescriptors || !g_internal[fd]);
}

void descriptor_opened(int fd, bool internal) {
  if (fd >= 0 && fd < kMostDescriptors) g_internal[fd] = internal;
}

// The connecting end comes first (or is still waiting to be accepted), the accepting one second:
// when it is seen, both are known to be ours.
void descriptor_connected(int fd) {
  if (peer_is_this_process(fd)) {
    descriptor_opened(fd, true);
    return;
  }
  const uint32_t connection = connection_of(fd);
  if (connection == 0) return;
  for (unsigned i = 0; i < g_end_count; ++i) {
    if (g_ends[i] != connection) continue;
    g_ends[i] = g_ends[--g_end_count];
    descriptor_opened(fd, true);
    // The other end is one of ours, too: find it.
    for (int other = 0; other < 4096; ++other) {
      if (other != fd && connection_of(other) == connection) descriptor_opened(other, true);
    }
    return;
  }
  if (g_end_count < kMostEnds) g_ends[g_end_count++] = connection;
}

void descriptors_shared() {
  memset(g_internal, 0, sizeof g_internal);
}

bool signals_may_come() {
  itimerval timer = {};
  raw_syscall(SYS_getitimer, ITIMER_REAL, as_long(&timer));
  return timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
}

}  // namespace heddle::rt
