// Signals that reach threads in the game, and those that threads of the program
// send each other.
//
// A thread that sleeps inside the scheduler takes note of a signal in its own
// time, which is the kernel's. So whoever sends one waits, with the baton,
// until it has arrived, and makes the other ready itself: from there on it is
// the schedule's choice when the handler runs.
#include "abi/status.h"
#include "runtime/sched_state.h"

#include <fcntl.h>
#include <string.h>

namespace heddle::rt {
namespace {

uint32_t g_seen;  // signals that have arrived; a futex word

// A line of numbers of /proc/self/task/TID/status, "SigBlk:" say.
uint64_t kernel_set(uint32_t tid, const char* name) {
  char path[64];
  format_text(path, sizeof path, "/proc/self/task/%u/status", tid);
  const long fd = raw_syscall(SYS_open, as_long(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[2048] = {};
  raw_syscall(SYS_read, fd, as_long(text), sizeof text - 1);
  raw_close(static_cast<int>(fd));
  const char* at = strstr(text, name);
  if (at == nullptr) return 0;
  uint64_t set = 0;
  for (at += strlen(name); *at == '\t' || *at == ' '; ++at) continue;
  for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); ++at) {
    set = set << 4 | static_cast<uint64_t>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
  }
  return set;
}

bool blocks(const Thread* thread, int signal) {
  return (kernel_set(thread->tid, "SigBlk:") >> (signal - 1) & 1) != 0;
}

bool lives(const Thread* thread) {
  return thread->state != State::kDead && thread->state != State::kUnused;
}

State state_now(const Thread* thread) {
  return static_cast<const volatile Thread*>(thread)->state;
}

// Nobody is going to take it for now.
bool is_blocked(const Thread* target, int signal) {
  if (target != nullptr) return blocks(target, signal);
  for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
    if (lives(&g_sched.threads[i]) && !blocks(&g_sched.threads[i], signal)) return false;
  }
  return true;
}

// The holder, on behalf of threads that were nudged and have not yet said so.
void take_nudges() {
  const Busy busy(t_self);
  lock_as_holder();
  for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
    Thread* thread = &g_sched.threads[i];
    if (thread == t_self || !lives(thread) || !take_nudge(thread)) continue;
    if (thread->state == State::kBlocked) enter_ready(thread);
  }
  arm();
  sched_unlock();
}

}  // namespace

bool sched_in_scheduler() {
  return t_self != nullptr && t_self->busy;
}
bool sched_is_outside() {
  return t_self != nullptr && t_self->state == State::kOutside;
}

void sched_nudge() {
  if (t_self == nullptr) return;
  __atomic_fetch_or(&t_self->turn, kNudgeBit, __ATOMIC_RELEASE);
  wake_idler();  // that may be this very thread, asleep below the handler
}

void sched_interrupt() {
  if (t_self != nullptr) t_self->interrupted = true;
}

void sched_note_signal_from_outside() {
  __atomic_fetch_or(&g_sched.sources, HEDDLE_SOURCE_SIGNAL, __ATOMIC_RELAXED);
}

SchedHandler sched_handler_begin() {
  const SchedHandler state = {sched_is_outside()};
  if (state.was_outside) sched_join_game();
  return state;
}

void sched_handler_end(SchedHandler state) {
  if (state.was_outside) sched_leave_game();
}

uint32_t sched_signals_seen() {
  return __atomic_load_n(&g_seen, __ATOMIC_ACQUIRE);
}

void sched_signal_seen() {
  __atomic_fetch_add(&g_seen, 1, __ATOMIC_RELEASE);
  futex_wake(&g_seen, 1);
}

void sched_settle_signal(const Thread* target, int signal, bool handled, uint32_t before) {
  if (!sched_active() || target == t_self || (target != nullptr && !lives(target))) return;
  const bool was_outside = target != nullptr && target->state == State::kOutside;
  if (!handled && !was_outside) return;
  constexpr int kTries = 500;
  constexpr timespec kPause = {0, 400000};
  for (int tries = 0; tries < kTries && sched_signals_seen() == before; ++tries) {
    if (was_outside && state_now(target) != State::kOutside) break;
    if (is_blocked(target, signal)) return;
    futex_wait(&g_seen, before, &kPause);
  }
  take_nudges();
}

}  // namespace heddle::rt
