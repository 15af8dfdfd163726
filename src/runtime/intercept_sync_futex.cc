// syscall(SYS_futex, …): how std::atomic::wait, latch, barrier and counting_semaphore of libstdc++,
// and home-made locks, reach the kernel. Waiting and waking on private futexes are ours; priority
// inheritance is left to the kernel.
#include "runtime/intercept.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

struct FutexCall {
  uint32_t* word;
  int operation;
  uint32_t value;
  const timespec* limit;  // or the second count
  uint32_t* other;
  uint32_t extra;
};

long fail(int error) {
  errno = error;
  return -1;
}

uint64_t deadline_of(const FutexCall& call, int command) {
  if (call.limit == nullptr) return kNoDeadline;
  if (command == FUTEX_WAIT_BITSET) {
    const bool wall = (call.operation & FUTEX_CLOCK_REALTIME) != 0;
    return clock_deadline(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, call.limit);
  }
  return clock_deadline_after(static_cast<uint64_t>(call.limit->tv_sec) * kNsPerSecond +
                              static_cast<uint64_t>(call.limit->tv_nsec));
}

long wait(const FutexCall& call, int command, const void* pc) {
  if (__atomic_load_n(call.word, __ATOMIC_SEQ_CST) != call.value) return fail(EAGAIN);
  if (call.limit != nullptr && !clock_valid(call.limit)) return fail(EINVAL);
  switch (sched_block(PointKind::kFutex, call.word, kWaitFutex, deadline_of(call, command),
                      kInterruptSignal, pc)) {
    case WakeReason::kTimedOut:
      return fail(ETIMEDOUT);
    case WakeReason::kSignal:
      return fail(EINTR);
    default:
      return 0;
  }
}

long wake(const FutexCall& call, uint32_t* word, uint32_t count) {
  const long woken = sched_wake(word, count);
  // Without the private flag another process may wait on it too.
  if ((call.operation & FUTEX_PRIVATE_FLAG) == 0 && woken < static_cast<long>(count)) {
    futex_wake(word, count - static_cast<uint32_t>(woken), true);
  }
  return woken;
}

long wake_operation(const FutexCall& call) {
  const uint32_t code = call.extra;
  uint32_t argument = (code >> 12) & 0xfff;
  if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) argument = 1u << argument;
  const uint32_t before = *call.other;
  switch (code >> 28 & 7) {
    case FUTEX_OP_SET:
      *call.other = argument;
      break;
    case FUTEX_OP_ADD:
      *call.other += argument;
      break;
    case FUTEX_OP_OR:
      *call.other |= argument;
      break;
    case FUTEX_OP_ANDN:
      *call.other &= ~argument;
      break;
    default:
      *call.other ^= argument;
      break;
  }
  const auto signed_before = static_cast<int32_t>(before);
  const auto limit = static_cast<int32_t>(code & 0xfff);
  bool second = false;
  switch (code >> 24 & 15) {
    case FUTEX_OP_CMP_EQ:
      second = signed_before == limit;
      break;
    case FUTEX_OP_CMP_NE:
      second = signed_before != limit;
      break;
    case FUTEX_OP_CMP_LT:
      second = signed_before < limit;
      break;
    case FUTEX_OP_CMP_LE:
      second = signed_before <= limit;
      break;
    case FUTEX_OP_CMP_GT:
      second = signed_before > limit;
      break;
    default:
      second = signed_before >= limit;
      break;
  }
  long woken = wake(call, call.word, call.value);
  if (second) woken += wake(call, call.other, static_cast<uint32_t>(as_long(call.limit)));
  return woken;
}

}  // namespace

// True when the call was ours; its result through `result`.
static bool futex_call(const FutexCall& call, const void* pc, long* result) {
  const int command = call.operation & FUTEX_CMD_MASK;
  switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      sched_point(PointKind::kFutex, call.word, pc);
      *result = wait(call, command, pc);
      return true;
    case FUTEX_WAKE:
      sched_point(PointKind::kFutex, call.word, pc);
      *result = wake(call, call.word, call.value);
      return true;
    case FUTEX_WAKE_BITSET:
      // Waiters tolerate to be woken for nothing, so the bits need not be kept.
      sched_point(PointKind::kFutex, call.word, pc);
      *result = wake(call, call.word, call.extra == ~0u ? call.value : ~0u);
      return true;
    case FUTEX_CMP_REQUEUE:
      if (__atomic_load_n(call.word, __ATOMIC_SEQ_CST) != call.extra) {
        *result = fail(EAGAIN);
        return true;
      }
      [[fallthrough]];
    case FUTEX_REQUEUE:
      sched_point(PointKind::kFutex, call.word, pc);
      *result = wake(call, call.word, ~0u);
      return true;
    case FUTEX_WAKE_OP:
      sched_point(PointKind::kFutex, call.word, pc);
      *result = wake_operation(call);
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::rt

using namespace heddle::rt;

RT_EXPORT long syscall(long number, ...) noexcept {
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (!sched_active()) return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number == SYS_futex) {
    const FutexCall call = {
        reinterpret_cast<uint32_t*>(a[0]), static_cast<int>(a[1]),
        static_cast<uint32_t>(a[2]),       reinterpret_cast<const timespec*>(a[3]),
        reinterpret_cast<uint32_t*>(a[4]), static_cast<uint32_t>(a[5])};
    long result;
    if (futex_call(call, RT_CALLER, &result)) return result;
  }
  if (number == SYS_sched_yield) {
    sched_point(PointKind::kYield, nullptr, RT_CALLER);
    return 0;
  }
  sched_brief_begin();
  const long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const int error = errno;
  sched_brief_end();
  errno = error;
  return result;
}
