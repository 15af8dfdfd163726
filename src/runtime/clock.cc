#include "runtime/clock.h"

#include "runtime/sched_state.h"

namespace heddle::rt {
namespace {

uint64_t g_extra;  // beyond kBoot and what the points account for

uint64_t real_now(clockid_t clock) {
  timespec now;
  raw_syscall(SYS_clock_gettime, clock, as_long(&now));
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) || sum == kNoDeadline ? kNoDeadline - 1 : sum;
}

uint64_t nanoseconds(const timespec* time) {
  if (time->tv_sec < 0) return 0;
  uint64_t result;
  if (__builtin_mul_overflow(static_cast<uint64_t>(time->tv_sec), kNsPerSecond, &result)) {
    return kNoDeadline - 1;
  }
  return saturating_add(result, static_cast<uint64_t>(time->tv_nsec));
}

bool is_wall_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

}  // namespace

void clock_init() {
  g_extra = 0;
}

uint64_t clock_now() {
  if (rt_option(real_time)) return real_now(CLOCK_MONOTONIC);
  return kBoot + g_extra + g_sched.points * kNsPerPoint;
}

void clock_waste() {
  if (rt_option(real_time)) {
    raw_syscall(SYS_sched_yield);
  } else {
    g_extra += kNsWasted;
  }
}

void clock_leap(uint64_t deadline) {
  const uint64_t now = clock_now();
  if (deadline > now) g_extra += deadline - now;
}

void clock_pass(uint64_t nanoseconds) {
  g_extra += nanoseconds;
}

uint64_t clock_point_of(uint64_t deadline) {
  constexpr uint64_t kPointsBetweenLooks = 2000;
  if (rt_option(real_time)) return g_sched.points + kPointsBetweenLooks;
  const uint64_t now = clock_now();
  if (deadline <= now) return g_sched.points + 1;
  return saturating_add(g_sched.points + 1, (deadline - now) / kNsPerPoint);
}

uint64_t clock_deadline(clockid_t clock, const timespec* absolute) {
  const uint64_t time = nanoseconds(absolute);
  if (!is_wall_clock(clock)) return time;
  // From the wall clock to the monotonic one.
  const uint64_t wall =
      rt_option(real_time) ? real_now(CLOCK_REALTIME) : kEpoch + clock_now() - kBoot;
  const uint64_t now = clock_now();
  return time <= wall ? 0 : saturating_add(now, time - wall);
}

uint64_t clock_deadline_after(uint64_t nanoseconds) {
  return saturating_add(clock_now(), nanoseconds);
}

void clock_gettime_real(clockid_t clock, timespec* out) {
  raw_syscall(SYS_clock_gettime, clock, as_long(out));
}

bool clock_valid(const timespec* time) {
  return time->tv_nsec >= 0 && time->tv_nsec < static_cast<long>(kNsPerSecond);
}

}  // namespace heddle::rt
