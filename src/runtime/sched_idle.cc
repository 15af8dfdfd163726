// When nobody is ready: deadlines, descriptors, those who are outside, or the end.
#include "runtime/clock.h"
#include "runtime/descriptors.h"
#include "runtime/sched_state.h"
#include "runtime/signals.h"

#include <errno.h>
#include <sys/eventfd.h>

namespace heddle::rt {
namespace {

constexpr uint64_t kNsPerMs = 1000000;
constexpr unsigned kMaxPolled = 1024;
// A process whose handlers could still be called, or whose descriptors we may have misjudged, is
// given this long before it is called dead.
constexpr uint64_t kSignalLook = 5 * kNsPerMs;  // nothing tells of a signal that is blocked
constexpr uint64_t kBenefitOfDoubt = 200 * kNsPerMs;

uint64_t real_monotonic() {
  timespec now;
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, as_long(&now));
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

timespec to_timespec(uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kNsPerSecond),
          static_cast<long>(nanoseconds % kNsPerSecond)};
}

// Something from outside the process could make a thread ready.
bool outside_may_help() {
  if (g_sched.outside != 0) return true;
  for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
    const Wait* wait = g_sched.blocked.items[i];
    for (unsigned k = 0; k < wait->descriptor_count; ++k) {
      if (descriptor_is_external(wait->descriptors[k].fd)) return true;
    }
  }
  return signals_may_come();
}

int idle_event() {
  if (g_sched.idle_event < 0) {
    constexpr int kHigh = 900;  // out of the way of programs that count on low numbers
    const long low = raw_syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (low < 0) return -1;
    const long high = raw_syscall(SYS_fcntl, low, 1030 /* F_DUPFD_CLOEXEC */, kHigh);
    if (high >= 0) raw_close(static_cast<int>(low));
    g_sched.idle_event = static_cast<int>(high >= 0 ? high : low);
  }
  return g_sched.idle_event;
}

// Sleeps, without the lock, until a descriptor is ready, somebody calls wake_idler, or the time is
// over.
void sleep_outside(uint64_t nanoseconds) {
  const timespec limit = to_timespec(nanoseconds);
  const timespec* timeout = nanoseconds == kNoDeadline ? nullptr : &limit;
  pollfd polled[kMaxPolled];
  unsigned count = 0;
  for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
    const Wait* wait = g_sched.blocked.items[i];
    for (unsigned k = 0; k < wait->descriptor_count && count + 1 < kMaxPolled; ++k) {
      if (wait->descriptors[k].fd >= 0) polled[count++] = wait->descriptors[k];
    }
  }
  const uint32_t word = __atomic_load_n(&g_sched.idle_word, __ATOMIC_RELAXED);
  if (count == 0) {
    sched_unlock();
    futex_wait(&g_sched.idle_word, word, timeout);
    sched_lock();
    return;
  }
  polled[count].fd = idle_event();
  polled[count].events = POLLIN;
  polled[count].revents = 0;
  sched_unlock();
  timespec remaining = limit;
  raw_syscall(SYS_ppoll, as_long(polled), count + 1, timeout == nullptr ? 0 : as_long(&remaining));
  sched_lock();
  uint64_t drained;
  if ((polled[count].revents & POLLIN) != 0) {
    raw_syscall(SYS_read, polled[count].fd, as_long(&drained), sizeof drained);
  }
  if ((polled[count].revents & POLLNVAL) != 0) g_sched.idle_event = -1;
}

}  // namespace

uint64_t next_deadline() {
  uint64_t earliest = kNoDeadline;
  for (unsigned i = 0; g_sched.timed != 0 && i < g_sched.blocked.count; ++i) {
    if (g_sched.blocked.items[i]->deadline < earliest) {
      earliest = g_sched.blocked.items[i]->deadline;
    }
  }
  return earliest;
}

void fire_deadlines() {
  while (g_sched.timed != 0) {
    const uint64_t now = clock_now();
    Wait* due = nullptr;
    for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
      Wait* wait = g_sched.blocked.items[i];
      if (wait->deadline <= now && (due == nullptr || wait->deadline < due->deadline)) due = wait;
    }
    if (due == nullptr) return;
    end_wait(due, WakeReason::kTimedOut);
  }
}

void poll_descriptors() {
  for (unsigned i = 0; i < g_sched.blocked.count;) {
    Wait* wait = g_sched.blocked.items[i];
    bool ready = false;
    if (wait->descriptors != nullptr) {
      timespec none = {};
      ready = raw_syscall(SYS_ppoll, as_long(wait->descriptors), wait->descriptor_count,
                          as_long(&none)) > 0;
    }
    if (ready) {
      end_wait(wait, WakeReason::kWoken);
    } else {
      ++i;
    }
  }
}

void sched_descriptors_changed() {
  if (g_sched.descriptor_waiters == 0) return;
  Thread* self = t_self;
  const Busy busy(self);
  lock_as_holder();
  poll_descriptors();
  arm();
  sched_unlock();
}

void wake_idler() {
  if (!g_sched.idling) return;
  __atomic_fetch_add(&g_sched.idle_word, 1, __ATOMIC_RELAXED);
  futex_wake(&g_sched.idle_word, 1);
  if (g_sched.descriptor_waiters != 0 && g_sched.idle_event >= 0) {
    const uint64_t one = 1;
    raw_write(g_sched.idle_event, &one, sizeof one);
  }
}

void idle(Thread* self) {
  uint64_t doubted = 0;
  g_sched.idling = true;
  for (;;) {
    if (self->state == State::kBlocked && take_nudge(self)) enter_ready(self);
    fire_deadlines();
    if (g_sched.ready.count != 0) break;
    poll_descriptors();
    if (g_sched.signal_waiters != 0) poll_signals();
    if (g_sched.ready.count != 0) break;
    const uint64_t deadline = next_deadline();
    const bool outside = outside_may_help();
    if (!outside && deadline != kNoDeadline && !rt_option(real_time)) {
      clock_leap(deadline);
      continue;
    }
    if (!outside && deadline == kNoDeadline && g_sched.signal_waiters == 0) {
      if (g_sched.descriptor_waiters == 0 && !signals_handled()) report_deadlock(self);
      if (doubted >= kBenefitOfDoubt) report_deadlock(self);
    }
    uint64_t limit = kNoDeadline;
    if (deadline != kNoDeadline) {
      const uint64_t now = clock_now();
      limit = deadline > now ? deadline - now : 1;
    } else if (!outside && g_sched.signal_waiters == 0) {
      limit = kBenefitOfDoubt;
    }
    if (g_sched.signal_waiters != 0 && limit > kSignalLook) limit = kSignalLook;
    const uint64_t before = real_monotonic();
    sleep_outside(limit);
    const uint64_t elapsed = real_monotonic() - before;
    if (!outside) doubted += elapsed;
    if (!rt_option(real_time)) clock_pass(elapsed);
  }
  g_sched.idling = false;
}

}  // namespace heddle::rt
