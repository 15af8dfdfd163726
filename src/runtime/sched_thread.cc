// Threads come and go: the table, the first and the last turn, fork.
#include "runtime/clock.h"
#include "runtime/descriptors.h"
#include "runtime/sched_point.h"
#include "runtime/sched_state.h"
#include "runtime/schedule.h"
#include "runtime/signals.h"
#include "runtime/strategy.h"
#include "runtime/watchdog.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

namespace heddle::rt {
namespace {

cpu_set_t g_cpus;  // before the process was pinned
bool g_pinned;

template <typename T>
T* allocate(size_t count) {
  const long mapping =
      raw_syscall(SYS_mmap, 0, static_cast<long>(count * sizeof(T)), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  RT_CHECK(mapping > 0 || mapping < -4096);
  return reinterpret_cast<T*>(mapping);
}

void pin() {
  if (!rt_option(pin)) return;
  if (raw_syscall(SYS_sched_getaffinity, 0, sizeof g_cpus, as_long(&g_cpus)) <= 0) return;
  unsigned cpu = 0;
  if (raw_syscall(SYS_getcpu, as_long(&cpu), 0) < 0) return;
  if (rt_option(processor) != 0) cpu = static_cast<unsigned>(rt_option(processor) - 1);
  if (cpu >= CPU_SETSIZE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  g_pinned = raw_syscall(SYS_sched_setaffinity, 0, sizeof one, as_long(&one)) == 0;
}

Thread* adopt_caller() {
  Thread* self = new_thread();
  self->handle = pthread_self();
  note_handle(self->handle);
  self->tid = raw_gettid();
  self->tls = &__heddle_tls;
  self->in_game = true;
  self->state = State::kRunning;
  t_self = self;
  set_holder(self);
  pthread_setspecific(g_sched.exit_key, self);
  return self;
}

// Whether the C library gave this thread the stack of an earlier one is chance.
void forget_stack() {
  const Inside guard;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* stack = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &stack, &size) == 0) sched_fresh_memory(stack, size);
  pthread_attr_destroy(&attributes);
}

bool is_gone(const Thread* thread) {
  const char state = kernel_state(thread->tid);
  return state == 0 || state == 'Z' || state == 'X';
}

// Programs that live in one thread never end here: the exit key is not destroyed by exit().
void end_thread(Thread* self) {
  sched_point(PointKind::kThreadEnd, self, nullptr);
  if (g_sched.live == 1) {
    wait_for_departing();
    return;  // the C library calls exit() on the last thread: it stays
  }
  rec_event(EventKind::kThreadEnd, LockMode::kExclusive, OpOutcome::kOk, 0, 0, 0, nullptr);
  signals_thread_end();
  robust_owner_ends(self);
  self->busy = true;
  lock_as_holder();
  ++self->steps;  // who runs after its end is a decision of its own
  self->state = State::kDead;
  --g_sched.live;
  ++g_sched.departing;
  for (unsigned i = 0; i < g_sched.blocked.count;) {
    Wait* wait = g_sched.blocked.items[i];
    if (wait->object == self) {
      end_wait(wait, WakeReason::kWoken);
    } else {
      ++i;
    }
  }
  // Somebody outside may be waiting for this thread's end in the kernel: then the watchdog keeps
  // the light on.
  if (g_sched.ready.count == 0 && g_sched.outside == 0) idle(self);
  rec_give();
  t_self = nullptr;
  if (g_sched.ready.count == 0) {
    set_holder(nullptr);  // all others are outside
    sched_unlock();
    return;
  }
  const Moment moment = {self,    PointKind::kThreadEnd, nullptr,
                         nullptr, g_sched.ready.items,   g_sched.ready.count};
  Thread* next = choose_after(moment);
  give_to(next);
  sched_unlock();
  wake_turn(next);
}

}  // namespace

void sched_init() {
  g_sched.threads = allocate<Thread>(kMaxThreads);
  g_sched.ready.items = allocate<Thread*>(kMaxThreads);
  g_sched.blocked.items = allocate<Wait*>(2 * kMaxThreads);
  g_sched.scratch = allocate<Thread*>(2 * kMaxThreads);
  g_sched.idle_event = -1;
  g_sched.patience = strcmp(rt_option(level), "off") == 0 ? 192 : 128;
  pthread_key_create(&g_sched.exit_key, sched_exit_destructor);
  clock_init();
  points_select(rt_option(points));
  strategy_select();
  adopt_caller();
  schedule_open();
  stop_init();
  pin();
  g_sched.slice_end = kSlicePoints;
  arm();
  g_sched.on = true;
  rec_take(0);
  if (rt_option(timeout) != 0) watchdog_start();
}

Thread* new_thread() {
  if (g_sched.thread_count == kMaxThreads) return nullptr;
  Thread* thread = &g_sched.threads[g_sched.thread_count];
  thread->id = g_sched.thread_count++;
  thread->atomic_mark = hash_mark(thread->id, PointKind::kAtomic);
  ++g_sched.live;
  g_strategy->created(thread);
  return thread;
}

Thread* find_thread(pthread_t handle) {
  // From the youngest: the C library uses handles again.
  for (uint32_t i = g_sched.thread_count; i > 0; --i) {
    Thread* thread = &g_sched.threads[i - 1];
    if (thread->handle == handle && !thread->joined && thread->state != State::kUnused) {
      return thread;
    }
  }
  return nullptr;
}

Thread* find_kernel_thread(uint32_t tid) {
  for (uint32_t i = g_sched.thread_count; i > 0; --i) {
    Thread* thread = &g_sched.threads[i - 1];
    if (thread->tid == tid && thread->state != State::kUnused) return thread;
  }
  return nullptr;
}

void note_gone(Thread* thread) {
  if (thread->gone) return;
  thread->gone = true;
  --g_sched.departing;
}

// A thread has some way to go in the C library after its last turn, and what it leaves there (its
// stack for the next thread, the number of threads that are left) is seen by those that come after.
void wait_for_departing() {
  for (uint32_t i = g_sched.thread_count; i > 0 && g_sched.departing != 0; --i) {
    Thread* thread = &g_sched.threads[i - 1];
    if (thread->state != State::kDead || thread->gone) continue;
    constexpr int kTries = 2000;
    constexpr timespec kPause = {0, 50000};
    for (int tries = 0; tries < kTries && !is_gone(thread); ++tries) {
      raw_syscall(SYS_nanosleep, as_long(&kPause), 0);
    }
    note_gone(thread);
  }
}

void start_thread(Thread* thread) {
  const Busy busy(t_self);
  lock_as_holder();
  points_thread_created(t_self);
  enter_ready(thread);
  arm();
  sched_unlock();
}

void first_turn(Thread* self) {
  self->tid = raw_gettid();
  self->tls = &__heddle_tls;
  t_self = self;
  self->busy = true;
  __atomic_store_n(&self->in_game, true, __ATOMIC_RELEASE);
  wait_turn(self);
  signals_thread_begin();
  if (g_sched.shared_only) forget_stack();
  self->busy = false;
  pthread_setspecific(g_sched.exit_key, self);
  rec_event(EventKind::kThreadBegin, LockMode::kExclusive, OpOutcome::kOk, 0, 0, self->parent,
            nullptr);
  deliver_if_nudged(self);
}

// The C library runs the destructors of thread-local objects first, then those of keys, in rounds
// as long as there are values; ours asks for another round until the last.
void sched_exit_destructor(void* value) {
  auto* self = static_cast<Thread*>(value);
  if (self != t_self || !g_sched.on) return;
  if (++self->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_sched.exit_key, self);
    return;
  }
  end_thread(self);
}

// ---- fork -----------------------------------------------------------------------------------

void sched_fork_prepare() {
  if (!sched_active()) return;
  lock_as_holder();
  ++g_sched.forks;
}

void sched_fork_parent() {
  if (!sched_active()) return;
  descriptors_shared();
  sched_unlock();
}

void sched_fork_child() {
  if (!sched_active()) return;
  const Thread before = *t_self;
  clock_pass(g_sched.points * kNsPerPoint);  // the clock goes on; the points begin again
  memset(g_sched.threads, 0, g_sched.thread_count * sizeof(Thread));
  g_sched.lock = 0;
  g_sched.ready.count = g_sched.blocked.count = 0;
  memset(g_sched.waiters, 0, sizeof g_sched.waiters);
  g_sched.outside = g_sched.signal_waiters = g_sched.timed = g_sched.descriptor_waiters = 0;
  g_sched.thread_count = g_sched.live = g_sched.departing = 0;
  g_sched.points = g_sched.hash = g_sched.switches = 0;
  g_sched.idling = false;
  g_sched.idle_event = -1;
  watchdog_after_fork_in_child();
  descriptors_shared();
  Thread* self = adopt_caller();
  self->async_cancel = before.async_cancel;
  self->exit_rounds = before.exit_rounds;
  self->stdio_depth = before.stdio_depth;
  g_sched.stream_locks = before.stdio_depth;
  self->no_preempt = before.no_preempt;
  // The n-th child of the same parent always decides the same.
  g_random.seed(rt_option(seed) + 0x9e3779b97f4a7c15ull * g_sched.forks);
  g_sched.forks = 0;
  g_strategy->start();
  schedule_after_fork_in_child();
  g_sched.slice_end = kSlicePoints;
  arm();
  if (rt_option(timeout) != 0) watchdog_start();
}

// ---- processors -----------------------------------------------------------------------------

void sched_unpin() {
  if (g_pinned) raw_syscall(SYS_sched_setaffinity, 0, sizeof g_cpus, as_long(&g_cpus));
}

bool sched_pinned_from(cpu_set_t* cpus) {
  if (g_pinned) *cpus = g_cpus;
  return g_pinned;
}

}  // namespace heddle::rt
