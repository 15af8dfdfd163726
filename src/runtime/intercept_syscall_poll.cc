// poll, select, epoll: first without waiting; when nothing is ready the thread blocks in the
// scheduler on the descriptors, with a deadline of the virtual clock.
#include "runtime/descriptors.h"
#include "runtime/intercept.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

namespace heddle::rt {
namespace {

constexpr unsigned kMostPolled = 1024;

uint64_t deadline_of(const timespec* limit) {
  if (limit == nullptr) return kNoDeadline;
  return clock_deadline_after(static_cast<uint64_t>(limit->tv_sec) * kNsPerSecond +
                              static_cast<uint64_t>(limit->tv_nsec));
}

bool is_zero(const timespec* limit) {
  return limit != nullptr && limit->tv_sec == 0 && limit->tv_nsec == 0;
}

// `look` is the call without waiting: more than 0 or less ends it, 0 means nothing is ready.
template <typename Look>
int look_until(pollfd* watched, unsigned count, const timespec* limit, const char* what,
               const void* pc, Look look) {
  // Looking again and again without waiting is a spin.
  sched_point(is_zero(limit) ? PointKind::kYield : PointKind::kSyscall, nullptr, pc);
  cancellation_point();
  const uint64_t deadline = deadline_of(limit);
  for (;;) {
    const int result = look();
    if (result != 0 || is_zero(limit)) return result;
    switch (block_on_descriptors(watched, count, what, deadline, pc)) {
      case WakeReason::kTimedOut:
        return look();
      case WakeReason::kSignal:
        errno = EINTR;
        return -1;
      case WakeReason::kCancelled:
        cancellation_point();
        break;
      default:
        break;
    }
  }
}

int poll_under_control(pollfd* fds, nfds_t count, const timespec* limit, const void* pc) {
  return look_until(fds, static_cast<unsigned>(count), limit, "poll", pc,
                    [&] { return REAL(poll)(fds, count, 0); });
}

struct timespec to_timespec(int milliseconds) {
  return {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1000000};
}

int select_under_control(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                         const timespec* limit, const void* pc) {
  fd_set wanted[3];
  fd_set* given[3] = {readable, writable, exceptional};
  const short events[3] = {POLLIN, POLLOUT, POLLPRI};
  pollfd watched[FD_SETSIZE];
  unsigned used = 0;
  for (int k = 0; k < 3; ++k) {
    if (given[k] == nullptr) continue;
    wanted[k] = *given[k];
    for (int fd = 0; fd < count && fd < FD_SETSIZE; ++fd) {
      if (FD_ISSET(fd, given[k]) && used < kMostPolled) watched[used++] = {fd, events[k], 0};
    }
  }
  return look_until(watched, used, limit, "select", pc, [&] {
    for (int k = 0; k < 3; ++k) {
      if (given[k] != nullptr) *given[k] = wanted[k];
    }
    timeval none = {};
    return REAL(select)(count, readable, writable, exceptional, &none);
  });
}

// Around the calls that change the signal mask while they wait.
struct Mask {
  explicit Mask(const sigset_t* mask) : changed_(mask != nullptr) {
    t_self->handled = false;
    if (changed_) pthread_sigmask(SIG_SETMASK, mask, &before_);
  }

  // A signal that was pending has been handled: the call is over before it began.
  bool interrupts() const {
    if (changed_ && t_self->handled) errno = EINTR;
    return changed_ && t_self->handled;
  }
  ~Mask() {
    if (changed_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  bool changed_;
  sigset_t before_;
};

}  // namespace
}  // namespace heddle::rt

using namespace heddle::rt;

RT_EXPORT int poll(pollfd* fds, nfds_t count, int milliseconds) {
  if (!sched_active()) return REAL(poll)(fds, count, milliseconds);
  const timespec limit = to_timespec(milliseconds);
  return poll_under_control(fds, count, milliseconds < 0 ? nullptr : &limit, RT_CALLER);
}

RT_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask) {
  if (!sched_active()) return REAL(ppoll)(fds, count, limit, mask);
  const void* pc = RT_CALLER;
  const Mask masked(mask);
  if (masked.interrupts()) return -1;
  return poll_under_control(fds, count, limit, pc);
}

RT_EXPORT int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                     timeval* limit) {
  if (!sched_active()) return REAL(select)(count, readable, writable, exceptional, limit);
  timespec precise = {};
  if (limit != nullptr) precise = {limit->tv_sec, limit->tv_usec * 1000};
  return select_under_control(count, readable, writable, exceptional,
                              limit == nullptr ? nullptr : &precise, RT_CALLER);
}

RT_EXPORT int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                      const timespec* limit, const sigset_t* mask) {
  if (!sched_active()) return REAL(pselect)(count, readable, writable, exceptional, limit, mask);
  const void* pc = RT_CALLER;
  const Mask masked(mask);
  if (masked.interrupts()) return -1;
  return select_under_control(count, readable, writable, exceptional, limit, pc);
}

RT_EXPORT int epoll_pwait(int epoll, epoll_event* events, int count, int milliseconds,
                          const sigset_t* mask) {
  if (!sched_active()) return REAL(epoll_pwait)(epoll, events, count, milliseconds, mask);
  const void* pc = RT_CALLER;
  const Mask masked(mask);
  if (masked.interrupts()) return -1;
  pollfd watched = {epoll, POLLIN, 0};
  const timespec limit = to_timespec(milliseconds);
  return look_until(&watched, 1, milliseconds < 0 ? nullptr : &limit, "epoll_wait", pc,
                    [&] { return REAL(epoll_wait)(epoll, events, count, 0); });
}

RT_EXPORT int epoll_wait(int epoll, epoll_event* events, int count, int milliseconds) {
  if (!sched_active()) return REAL(epoll_wait)(epoll, events, count, milliseconds);
  pollfd watched = {epoll, POLLIN, 0};
  const timespec limit = to_timespec(milliseconds);
  return look_until(&watched, 1, milliseconds < 0 ? nullptr : &limit, "epoll_wait", RT_CALLER,
                    [&] { return REAL(epoll_wait)(epoll, events, count, 0); });
}

RT_EXPORT int epoll_create1(int flags) noexcept {
  const int fd = REAL(epoll_create1)(flags);
  if (fd >= 0 && sched_active()) descriptor_opened(fd, true);  // until something external is added
  return fd;
}

RT_EXPORT int epoll_create(int size) noexcept {
  const int fd = REAL(epoll_create)(size);
  if (fd >= 0 && sched_active()) descriptor_opened(fd, true);
  return fd;
}

RT_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  const int status = REAL(epoll_ctl)(epoll, operation, fd, event);
  if (!sched_active()) return status;
  if (status == 0 && operation == EPOLL_CTL_ADD && descriptor_is_external(fd)) {
    descriptor_opened(epoll, false);
  }
  const int error = errno;
  sched_descriptors_changed();
  errno = error;
  return status;
}
