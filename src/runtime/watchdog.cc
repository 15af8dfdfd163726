#include "runtime/watchdog.h"

#include "abi/status.h"
#include "runtime/clock.h"
#include "runtime/sched_state.h"
#include "runtime/strategy.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

namespace heddle::rt {
namespace {

constexpr size_t kStackSize = 64 * 1024;
// Thread-local variables of the runtime lie below the thread pointer, at
// offsets that the dynamic linker chose; this is more than it gives out.
constexpr size_t kThreadBlock = 64 * 1024;
constexpr uint64_t kNsPerMs = 1000000;

// For calls that are not quick but have an end (sched_brief_begin), and for the disk.
constexpr uint64_t kPatience = 300 * kNsPerMs;

bool g_running;

uint64_t real_monotonic() {
  timespec now;
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, as_long(&now));
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

bool is_asleep(char state) {
  return state == 'S' || state == 'D';
}

// Whether what it sleeps for comes by itself, if only the machine were less busy: the disk, or a
// lock of the C library that a thread holds on its way out.
bool has_an_end(const Thread* holder, char state) {
  return holder->patient || state == 'D' || g_sched.departing != 0;
}

// With the lock held, on behalf of whoever would run: passes the baton to
// somebody who is ready.
Thread* pass_on(Thread* from) {
  const Moment moment = {from,    PointKind::kSyscall, nullptr,
                         nullptr, g_sched.ready.items, g_sched.ready.count};
  Thread* next = g_strategy->after(moment);
  give_to(next);
  return next;
}

// The holder has slept in the kernel since the last look, `elapsed` nanoseconds
// ago.
void seize(Thread* holder, uint64_t points, uint64_t elapsed) {
  Thread* next = nullptr;
  sched_lock();
  if (g_sched.holder == holder && g_sched.points == points && !holder->busy && !rec_stalled() &&
      !g_sched.idling) {
    // Nobody's steps move the clock meanwhile.
    if (!rt_option(real_time)) clock_pass(elapsed);
    fire_deadlines();
    poll_descriptors();
    if (g_sched.ready.count != 0) {
      rec_fence_holder();
      if (is_asleep(kernel_state(holder->tid))) {
        rec_seize();
        holder->state = State::kOutside;
        ++g_sched.outside;
        next = pass_on(holder);
        g_sched.sources |= HEDDLE_SOURCE_KERNEL;
        if (!holder->brief && g_sched.seized++ == 0) {
          say("thread %u sleeps in a call that is not under control; another "
              "runs meanwhile (such "
              "runs may differ from time to time)",
              holder->id);
        }
      }
    }
  }
  sched_unlock();
  if (next != nullptr) wake_turn(next);
}

// Nobody holds the baton because the last one went outside: deadlines still
// have to fire.
void keep_light_on(uint64_t elapsed) {
  Thread* next = nullptr;
  sched_lock();
  if (g_sched.holder == nullptr && g_sched.blocked.count + g_sched.ready.count != 0) {
    if (!rt_option(real_time)) clock_pass(elapsed);
    fire_deadlines();
    poll_descriptors();
    if (g_sched.signal_waiters != 0) poll_signals();
    if (g_sched.ready.count == 0 && g_sched.outside == 0 && !rt_option(real_time) &&
        next_deadline() != kNoDeadline) {
      clock_leap(next_deadline());
      fire_deadlines();
    }
    if (g_sched.ready.count != 0) next = pass_on(&g_sched.threads[0]);
  }
  sched_unlock();
  if (next != nullptr) wake_turn(next);
}

int watch(void*) {
  const uint64_t period = (rt_option(watchdog) == 0 ? 3 : rt_option(watchdog)) * kNsPerMs;
  const uint64_t timeout = rt_option(timeout) * kNsPerSecond;
  const uint64_t start = real_monotonic();
  uint64_t last = start;
  Thread* holder = nullptr;
  uint64_t points = 0;
  uint64_t asleep_since = 0;  // 0: it was not asleep at the last look
  const timespec pause = {static_cast<time_t>(period / 2 / kNsPerSecond),
                          static_cast<long>(period / 2 % kNsPerSecond)};
  while (g_sched.on) {
    raw_syscall(SYS_nanosleep, as_long(&pause), 0);
    const uint64_t now = real_monotonic();
    if (timeout != 0 && now - start >= timeout && g_sched.on) report_hang();
    Thread* present = __atomic_load_n(&g_sched.holder, __ATOMIC_RELAXED);
    if (present == nullptr) {
      keep_light_on(now - last);
    } else if (present != holder || g_sched.points != points) {
      asleep_since = 0;
    } else if (g_sched.live > 1 && !present->busy) {
      const char state = kernel_state(present->tid);
      const bool sleeps = is_asleep(state);
      const uint64_t limit = has_an_end(present, state) ? kPatience : period / 2;
      if (sleeps && asleep_since != 0 && now - asleep_since >= limit) {
        seize(present, points, now - last);
      }
      if (!sleeps) asleep_since = 0;
      if (sleeps && asleep_since == 0) asleep_since = now;
    }
    if (present != nullptr && __atomic_load_n(&g_sched.signal_waiters, __ATOMIC_RELAXED) != 0) {
      const SchedLocked locked;
      if (g_sched.holder == present && !g_sched.idling) poll_signals();
    }
    if (rt_option(real_time) && g_sched.timed != 0) g_sched.next_action = 0;
    holder = present;
    points = g_sched.points;
    last = now;
  }
  return 0;
}

}  // namespace

char kernel_state(uint32_t tid) {
  char path[64];
  format_text(path, sizeof path, "/proc/self/task/%u/stat", tid);
  const long fd = raw_syscall(SYS_open, as_long(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[256] = {};
  raw_syscall(SYS_read, fd, as_long(text), sizeof text - 1);
  raw_close(static_cast<int>(fd));
  const char* bracket = strrchr(text, ')');
  return bracket != nullptr && bracket[1] == ' ' ? bracket[2] : 0;
}

void watchdog_start() {
  if (g_running) return;
  g_running = true;
  const long mapping =
      raw_syscall(SYS_mmap, 0, kStackSize + kThreadBlock + 4096, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping < 0 && mapping > -4096) return;
  auto* base = reinterpret_cast<char*>(mapping);
  char* stack = base + kStackSize;
  char* thread_pointer = stack + kThreadBlock;
  *reinterpret_cast<char**>(thread_pointer) = thread_pointer;  // %fs:0 is its own address
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_SETTLS;
  // The program's signals are not for the watchdog.
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  raw_syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, as_long(&all), as_long(&before), sizeof all);
  const int child = clone(watch, stack, flags, nullptr, nullptr, thread_pointer, nullptr);
  raw_syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, as_long(&before), 0, sizeof before);
  if (child < 0)
    say("the watchdog could not start; a call that is not under control may "
        "hang");
}

void watchdog_after_fork_in_child() {
  g_running = false;
}

}  // namespace heddle::rt
