// Reading and writing: calls on a descriptor that may sleep until it is ready.
//
// A thread does not sleep in them: it polls, and when the descriptor is not ready it blocks in the
// scheduler until some other thread's call may have changed that (sched_descriptors_changed), or,
// when everybody waits, until the kernel says so. So what threads of one process send to each other
// comes in the same order every time.
#include "abi/status.h"
#include "runtime/descriptors.h"
#include "runtime/intercept.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

bool is_ready(int fd, short events) {
  pollfd one = {fd, events, 0};
  timespec none = {};
  return raw_syscall(SYS_ppoll, as_long(&one), 1, as_long(&none)) != 0;  // an error is ready, too
}

// 0, or EINTR.
int wait_until_ready(int fd, short events, const char* what, const void* pc) {
  pollfd one = {fd, events, 0};
  for (;;) {
    switch (block_on_descriptors(&one, 1, what, kNoDeadline, pc)) {
      case WakeReason::kSignal:
        return EINTR;
      case WakeReason::kCancelled:
        cancellation_point();
        break;
      default:
        break;
    }
    if (is_ready(fd, events)) return 0;
  }
}

bool is_nonblocking(int fd) {
  const long flags = raw_syscall(SYS_fcntl, fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// True when the real call is not going to sleep; false: interrupted, errno is set.
bool get_ready(int fd, short events, bool nonblocking, const char* what, const void* pc) {
  sched_point(PointKind::kSyscall, nullptr, pc);
  cancellation_point();
  if (nonblocking || is_ready(fd, events) || is_nonblocking(fd)) return true;
  const int error = wait_until_ready(fd, events, what, pc);
  if (error == 0) return true;
  errno = error;
  return false;
}

bool is_pipe_or_socket(int fd) {
  return raw_syscall(SYS_lseek, fd, 0, 1 /* SEEK_CUR */) == -ESPIPE;
}

// The call itself, made by the holder.
template <typename Call>
auto perform(Call call) {
  sched_brief_begin();
  const auto result = call();
  const int error = errno;
  sched_brief_end();
  if (result >= 0) sched_descriptors_changed();
  errno = error;
  return result;
}

template <typename Call>
ssize_t receive(int fd, bool nonblocking, const char* what, const void* pc, Call call) {
  if (!get_ready(fd, POLLIN, nonblocking, what, pc)) return -1;
  if (descriptor_is_external(fd) && is_pipe_or_socket(fd)) {
    g_sched.sources |= HEDDLE_SOURCE_OUTSIDE;
  }
  return perform(call);
}

// A blocking write of many bytes sleeps in the middle, while others must be able to read. So it is
// done in pieces that fit: POLLOUT promises room for PIPE_BUF bytes.
constexpr size_t kPiece = 4096;

template <typename Call>  // ssize_t(const char*, size_t)
ssize_t send_pieces(int fd, const void* data, size_t size, const char* what, const void* pc,
                    Call call) {
  const auto* at = static_cast<const char*>(data);
  size_t sent = 0;
  do {
    if (!get_ready(fd, POLLOUT, false, what, pc))
      return sent == 0 ? -1 : static_cast<ssize_t>(sent);
    const size_t piece = size - sent < kPiece ? size - sent : kPiece;
    const ssize_t result = perform([&] { return call(at + sent, piece); });
    if (result < 0) return sent == 0 ? -1 : static_cast<ssize_t>(sent);
    sent += static_cast<size_t>(result);
    if (static_cast<size_t>(result) < piece) break;
  } while (sent < size);
  return static_cast<ssize_t>(sent);
}

bool needs_pieces(int fd, size_t size) {
  return size > kPiece && is_pipe_or_socket(fd) && !is_nonblocking(fd);
}

bool is_stream_socket(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, as_long(&type), as_long(&length)) ==
             0 &&
         type == SOCK_STREAM;
}

}  // namespace

void await_input(int fd, const char* what, const void* pc) {
  if (fd < 0 || !is_pipe_or_socket(fd)) return;
  if (descriptor_is_external(fd)) g_sched.sources |= HEDDLE_SOURCE_OUTSIDE;
  if (is_ready(fd, POLLIN) || is_nonblocking(fd)) return;
  // As the C library does before it waits for somebody who may be waiting for an answer.
  fflush(stdout);
  wait_until_ready(fd, POLLIN, what, pc);
}

}  // namespace heddle::rt

using namespace heddle::rt;

RT_EXPORT ssize_t read(int fd, void* data, size_t size) {
  if (!sched_active()) return REAL(read)(fd, data, size);
  return receive(fd, false, "read", RT_CALLER, [&] { return REAL(read)(fd, data, size); });
}

RT_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  if (!sched_active()) return REAL(readv)(fd, parts, count);
  return receive(fd, false, "readv", RT_CALLER, [&] { return REAL(readv)(fd, parts, count); });
}

RT_EXPORT ssize_t recv(int fd, void* data, size_t size, int flags) {
  if (!sched_active()) return REAL(recv)(fd, data, size, flags);
  return receive(fd, (flags & MSG_DONTWAIT) != 0, "recv", RT_CALLER,
                 [&] { return REAL(recv)(fd, data, size, flags); });
}

RT_EXPORT ssize_t recvfrom(int fd, void* data, size_t size, int flags, sockaddr* address,
                           socklen_t* length) {
  if (!sched_active()) return REAL(recvfrom)(fd, data, size, flags, address, length);
  return receive(fd, (flags & MSG_DONTWAIT) != 0, "recvfrom", RT_CALLER,
                 [&] { return REAL(recvfrom)(fd, data, size, flags, address, length); });
}

RT_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (!sched_active()) return REAL(recvmsg)(fd, message, flags);
  return receive(fd, (flags & MSG_DONTWAIT) != 0, "recvmsg", RT_CALLER,
                 [&] { return REAL(recvmsg)(fd, message, flags); });
}

RT_EXPORT ssize_t write(int fd, const void* data, size_t size) {
  if (!sched_active()) return REAL(write)(fd, data, size);
  const void* pc = RT_CALLER;
  if (needs_pieces(fd, size)) {
    return send_pieces(fd, data, size, "write", pc,
                       [&](const char* at, size_t piece) { return REAL(write)(fd, at, piece); });
  }
  if (!get_ready(fd, POLLOUT, false, "write", pc)) return -1;
  return perform([&] { return REAL(write)(fd, data, size); });
}

RT_EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  if (!sched_active()) return REAL(writev)(fd, parts, count);
  if (!get_ready(fd, POLLOUT, false, "writev", RT_CALLER)) return -1;
  return perform([&] { return REAL(writev)(fd, parts, count); });
}

RT_EXPORT ssize_t send(int fd, const void* data, size_t size, int flags) {
  if (!sched_active()) return REAL(send)(fd, data, size, flags);
  const void* pc = RT_CALLER;
  const bool nonblocking = (flags & MSG_DONTWAIT) != 0;
  if (!nonblocking && needs_pieces(fd, size) && is_stream_socket(fd)) {
    return send_pieces(fd, data, size, "send", pc, [&](const char* at, size_t piece) {
      return REAL(send)(fd, at, piece, flags);
    });
  }
  if (!get_ready(fd, POLLOUT, nonblocking, "send", pc)) return -1;
  return perform([&] { return REAL(send)(fd, data, size, flags); });
}

RT_EXPORT ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* address,
                         socklen_t length) {
  if (!sched_active()) return REAL(sendto)(fd, data, size, flags, address, length);
  if (!get_ready(fd, POLLOUT, (flags & MSG_DONTWAIT) != 0, "sendto", RT_CALLER)) return -1;
  return perform([&] { return REAL(sendto)(fd, data, size, flags, address, length); });
}

RT_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (!sched_active()) return REAL(sendmsg)(fd, message, flags);
  if (!get_ready(fd, POLLOUT, (flags & MSG_DONTWAIT) != 0, "sendmsg", RT_CALLER)) return -1;
  return perform([&] { return REAL(sendmsg)(fd, message, flags); });
}

// ---- connections ------------------------------------------------------------------------------

RT_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  if (!sched_active()) return REAL(accept4)(fd, address, length, flags);
  if (!get_ready(fd, POLLIN, false, "accept", RT_CALLER)) return -1;
  const int connection = perform([&] { return REAL(accept4)(fd, address, length, flags); });
  if (connection >= 0) descriptor_connected(connection);
  return connection;
}

RT_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) {
  if (!sched_active()) return REAL(accept)(fd, address, length);
  if (!get_ready(fd, POLLIN, false, "accept", RT_CALLER)) return -1;
  const int connection = perform([&] { return REAL(accept)(fd, address, length); });
  if (connection >= 0) descriptor_connected(connection);
  return connection;
}

RT_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  if (!sched_active()) return REAL(connect)(fd, address, length);
  sched_point(PointKind::kSyscall, nullptr, RT_CALLER);
  cancellation_point();
  const int status = perform([&] { return REAL(connect)(fd, address, length); });
  const int error = errno;
  if (status == 0) descriptor_connected(fd);
  sched_descriptors_changed();
  errno = error;
  return status;
}

RT_EXPORT int shutdown(int fd, int how) noexcept {
  if (!sched_active()) return REAL(shutdown)(fd, how);
  sched_point(PointKind::kSyscall, nullptr, RT_CALLER);
  return perform([&] { return REAL(shutdown)(fd, how); });
}

RT_EXPORT int close(int fd) {
  if (!sched_active()) return REAL(close)(fd);
  sched_point(PointKind::kSyscall, nullptr, RT_CALLER);
  descriptor_opened(fd, false);
  return perform([&] { return REAL(close)(fd); });
}

RT_EXPORT int pipe2(int ends[2], int flags) noexcept {
  const int status = REAL(pipe2)(ends, flags);
  if (status == 0 && sched_active()) {
    descriptor_opened(ends[0], true);
    descriptor_opened(ends[1], true);
  }
  return status;
}

RT_EXPORT int pipe(int ends[2]) noexcept {
  const int status = REAL(pipe)(ends);
  if (status == 0 && sched_active()) {
    descriptor_opened(ends[0], true);
    descriptor_opened(ends[1], true);
  }
  return status;
}

RT_EXPORT int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  const int status = REAL(socketpair)(domain, type, protocol, ends);
  if (status == 0 && sched_active()) {
    descriptor_opened(ends[0], true);
    descriptor_opened(ends[1], true);
  }
  return status;
}

extern "C" int eventfd(unsigned value, int flags) noexcept;
RT_EXPORT int eventfd(unsigned value, int flags) noexcept {
  const int fd = REAL(eventfd)(value, flags);
  if (fd >= 0 && sched_active()) descriptor_opened(fd, true);
  return fd;
}
