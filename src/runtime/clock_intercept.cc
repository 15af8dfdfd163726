// Clocks and sleeps under the names the program uses.
#include "abi/status.h"
#include "runtime/intercept.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

bool is_virtual(clockid_t clock) {
  if (!sched_active() || rt_option(real_time)) return false;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return true;
    default:
      return false;  // CPU time
  }
}

// A run that looks at the real time is not the schedule's alone.
void note_real_clock() {
  if (sched_active()) g_sched.sources |= HEDDLE_SOURCE_CLOCK;
}

timespec to_timespec(uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kNsPerSecond),
          static_cast<long>(nanoseconds % kNsPerSecond)};
}

// A thread that looks at the clock all the time waits for it.
uint64_t read_clock(clockid_t clock) {
  constexpr uint32_t kImpatient = 64;
  constexpr uint64_t kBusyWait = 100;
  sched_need_baton();
  Thread* self = t_self;
  if (self->clock_steps != self->steps) {
    self->clock_steps = self->steps;
    self->clock_reads = 0;
  }
  const bool busy_waits = ++self->clock_reads > kImpatient;
  clock_pass(busy_waits ? kNsPerRead * kBusyWait : kNsPerRead);
  if (busy_waits && self->clock_reads % kImpatient == 0) {
    sched_point(PointKind::kYield, nullptr, nullptr);
    self->clock_steps = self->steps;  // its own yield is no progress
  }
  const uint64_t now = clock_now();
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
  return wall ? kEpoch + now - kBoot : now;
}

}  // namespace

int sleep_until(uint64_t deadline, const void* pc) {
  sched_point(PointKind::kSleep, nullptr, pc);
  cancellation_point();
  // An object of its own: nobody wakes it but the clock.
  for (;;) {
    switch (sched_block(PointKind::kSleep, &t_self->turn, "the clock", deadline,
                        kInterruptCancel | kInterruptSignal, pc)) {
      case WakeReason::kSignal:
        return EINTR;
      case WakeReason::kCancelled:
        cancellation_point();
        break;
      default:
        return 0;
    }
  }
}

}  // namespace heddle::rt

using namespace heddle::rt;

RT_EXPORT int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (!is_virtual(clock)) {
    note_real_clock();
    return REAL(clock_gettime)(clock, out);
  }
  *out = to_timespec(read_clock(clock));
  return 0;
}

RT_EXPORT int gettimeofday(timeval* out, void* zone) noexcept {
  if (!is_virtual(CLOCK_REALTIME)) {
    note_real_clock();
    return REAL(gettimeofday)(out, zone);
  }
  const timespec now = to_timespec(read_clock(CLOCK_REALTIME));
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

RT_EXPORT time_t time(time_t* out) noexcept {
  if (!is_virtual(CLOCK_REALTIME)) {
    note_real_clock();
    return REAL(time)(out);
  }
  const time_t now = to_timespec(read_clock(CLOCK_REALTIME)).tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

RT_EXPORT int timespec_get(timespec* out, int base) noexcept {
  if (!is_virtual(CLOCK_REALTIME) || base != TIME_UTC) return REAL(timespec_get)(out, base);
  *out = to_timespec(read_clock(CLOCK_REALTIME));
  return base;
}

RT_EXPORT clock_t clock() noexcept {
  note_real_clock();
  return REAL(clock)();
}

RT_EXPORT clock_t times(tms* out) noexcept {
  note_real_clock();
  return REAL(times)(out);
}

RT_EXPORT int getrusage(__rusage_who_t who, rusage* out) noexcept {
  note_real_clock();
  return REAL(getrusage)(who, out);
}

RT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted,
                              timespec* remaining) {
  if (!sched_active()) return REAL(clock_nanosleep)(clock, flags, wanted, remaining);
  if (!clock_valid(wanted) || wanted->tv_sec < 0) return EINVAL;
  if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
    return outside([&] { return REAL(clock_nanosleep)(clock, flags, wanted, remaining); });
  }
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const uint64_t deadline =
      absolute ? clock_deadline(clock, wanted)
               : clock_deadline_after(static_cast<uint64_t>(wanted->tv_sec) * kNsPerSecond +
                                      static_cast<uint64_t>(wanted->tv_nsec));
  if (!absolute && wanted->tv_sec == 0 && wanted->tv_nsec == 0) {
    sched_point(PointKind::kYield, nullptr, RT_CALLER);
    return 0;
  }
  const int error = sleep_until(deadline, RT_CALLER);
  if (error != 0 && remaining != nullptr && !absolute) {
    const uint64_t now = clock_now();
    *remaining = to_timespec(deadline > now ? deadline - now : 0);
  }
  return error;
}

RT_EXPORT int nanosleep(const timespec* wanted, timespec* remaining) {
  if (!sched_active()) return REAL(nanosleep)(wanted, remaining);
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, wanted, remaining);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

RT_EXPORT int usleep(useconds_t microseconds) {
  if (!sched_active()) return REAL(usleep)(microseconds);
  const timespec wanted = {static_cast<time_t>(microseconds / 1000000),
                           static_cast<long>(microseconds % 1000000) * 1000};
  return nanosleep(&wanted, nullptr);
}

RT_EXPORT unsigned sleep(unsigned seconds) {
  if (!sched_active()) return REAL(sleep)(seconds);
  const timespec wanted = {static_cast<time_t>(seconds), 0};
  timespec remaining = {};
  if (nanosleep(&wanted, &remaining) == 0) return 0;
  return static_cast<unsigned>(remaining.tv_sec) + (remaining.tv_nsec >= 500000000 ? 1 : 0);
}
