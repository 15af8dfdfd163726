// Sending signals, waiting for them, and the mask.
//
// Those who wait for a signal are blocked in the scheduler like everybody else, and ask the kernel
// without waiting: then the order in which they come back is the schedule's.
#include "runtime/intercept.h"
#include "runtime/sched_signals.h"
#include "runtime/signals.h"

#include <signal.h>
#include <sys/types.h>

namespace heddle::rt {
namespace {

bool is_signal(int signal) {
  return signal > 0 && signal < NSIG;
}

template <typename Call>
KernelSend sender(const Call&) {
  return [](const void* call) -> long { return (*static_cast<const Call*>(call))(); };
}

// `call` is the real thing.
template <typename Call>
int to_thread(Thread* target, const Letter& letter, const Call& call) {
  int status = 0;
  if (!sched_active() || target == nullptr || !is_signal(letter.signal)) {
    status = static_cast<int>(call());
  } else {
    status = static_cast<int>(send_to_thread(target, letter, sender(call), &call));
  }
  const int error = errno;
  deliver_pending_signals();
  errno = error;
  return status;
}

template <typename Call>
int to_process(pid_t pid, const Letter& letter, const Call& call) {
  int status = 0;
  if (!sched_active() || pid != static_cast<pid_t>(raw_getpid()) || !is_signal(letter.signal)) {
    status = static_cast<int>(call());
  } else {
    status = static_cast<int>(send_to_process(letter, sender(call), &call));
  }
  const int error = errno;
  deliver_pending_signals();
  errno = error;
  return status;
}

bool is_zero(const timespec* limit) {
  return limit != nullptr && limit->tv_sec == 0 && limit->tv_nsec == 0;
}

// The signal, or -1 and errno: EAGAIN at the deadline, EINTR after a handler.
int take_signal(const sigset_t* set, siginfo_t* info, const timespec* limit, const void* pc) {
  sched_point(is_zero(limit) ? PointKind::kYield : PointKind::kSyscall, nullptr, pc);
  cancellation_point();
  constexpr uint64_t kLibrarys = uint64_t{3} << 31;  // of the C library: 32 and 33
  const uint64_t wanted = kernel_mask(*set) & ~kLibrarys;
  const uint64_t deadline =
      limit == nullptr ? kNoDeadline
                       : clock_deadline_after(static_cast<uint64_t>(limit->tv_sec) * kNsPerSecond +
                                              static_cast<uint64_t>(limit->tv_nsec));
  // Who waits for a signal without blocking it gets it all the same, from the kernel.
  const uint64_t mask = set_mask(SIG_BLOCK, wanted);
  bool last = is_zero(limit);
  long result = 0;
  for (;;) {
    timespec none = {};
    result = raw_syscall(SYS_rt_sigtimedwait, as_long(&wanted), as_long(info), as_long(&none),
                         sizeof wanted);
    if (result != -EAGAIN || last) break;
    const WakeReason reason = block_on_signals(wanted, "a signal", deadline, pc);
    last = reason == WakeReason::kTimedOut;
    if (reason == WakeReason::kSignal) {
      result = -EINTR;
      break;
    }
    if (reason == WakeReason::kCancelled) {
      set_mask(SIG_SETMASK, mask);
      cancellation_point();
      set_mask(SIG_BLOCK, wanted);
    }
  }
  set_mask(SIG_SETMASK, mask);
  deliver_pending_signals();
  if (result > 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// Until a handler has run, with `mask`.
int suspend(uint64_t mask, const void* pc) {
  sched_point(PointKind::kSyscall, nullptr, pc);
  cancellation_point();
  Thread* self = t_self;
  self->handled = false;
  const uint64_t before = set_mask(SIG_SETMASK, mask);
  deliver_pending_signals();
  while (!self->handled) {
    const WakeReason reason = block_on_signals(0, "a signal", kNoDeadline, pc);
    if (reason == WakeReason::kSignal) break;
    if (reason == WakeReason::kCancelled) {
      set_mask(SIG_SETMASK, before);
      cancellation_point();
      set_mask(SIG_SETMASK, mask);
    }
  }
  set_mask(SIG_SETMASK, before);
  deliver_pending_signals();
  errno = EINTR;
  return -1;
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle::rt;

// ---- sending ------------------------------------------------------------------------------------

// A signal to oneself is delivered before the call returns.
RT_EXPORT int raise(int signal) noexcept {
  const int status = REAL(raise)(signal);
  deliver_pending_signals();
  return status;
}

RT_EXPORT int kill(pid_t pid, int signal) noexcept {
  return to_process(pid, {signal, SI_USER, nullptr}, [&] { return REAL(kill)(pid, signal); });
}

RT_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  return to_process(pid, {signal, SI_QUEUE, value.sival_ptr},
                    [&] { return REAL(sigqueue)(pid, signal, value); });
}

RT_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  Thread* target = sched_active() ? find_thread(thread) : nullptr;
  return to_thread(target, {signal, SI_TKILL, nullptr},
                   [&] { return REAL(pthread_kill)(thread, signal); });
}

RT_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const sigval value) noexcept {
  Thread* target = sched_active() ? find_thread(thread) : nullptr;
  return to_thread(target, {signal, SI_QUEUE, value.sival_ptr},
                   [&] { return REAL(pthread_sigqueue)(thread, signal, value); });
}

RT_EXPORT int tgkill(pid_t pid, pid_t tid, int signal) {
  const bool ours = sched_active() && pid == static_cast<pid_t>(raw_getpid());
  Thread* target = ours ? find_kernel_thread(static_cast<uint32_t>(tid)) : nullptr;
  return to_thread(target, {signal, SI_TKILL, nullptr},
                   [&] { return REAL(tgkill)(pid, tid, signal); });
}

// ---- the mask -----------------------------------------------------------------------------------

RT_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const int status = REAL(sigprocmask)(how, set, before);
  deliver_pending_signals();
  return status;
}

RT_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const int status = REAL(pthread_sigmask)(how, set, before);
  deliver_pending_signals();
  return status;
}

// ---- waiting ------------------------------------------------------------------------------------

RT_EXPORT int pause() {
  if (!sched_active()) return REAL(pause)();
  return suspend(set_mask(SIG_BLOCK, 0), RT_CALLER);
}

RT_EXPORT int sigsuspend(const sigset_t* mask) {
  if (!sched_active()) return REAL(sigsuspend)(mask);
  return suspend(kernel_mask(*mask), RT_CALLER);
}

RT_EXPORT int sigwait(const sigset_t* set, int* signal) {
  if (!sched_active()) return REAL(sigwait)(set, signal);
  const void* pc = RT_CALLER;
  siginfo_t info;
  int taken = 0;
  do {
    taken = take_signal(set, &info, nullptr, pc);
  } while (taken < 0 && errno == EINTR);
  if (taken < 0) return errno;
  *signal = taken;
  return 0;
}

RT_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (!sched_active()) return REAL(sigwaitinfo)(set, info);
  return take_signal(set, info, nullptr, RT_CALLER);
}

RT_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!sched_active()) return REAL(sigtimedwait)(set, info, limit);
  return take_signal(set, info, limit, RT_CALLER);
}
