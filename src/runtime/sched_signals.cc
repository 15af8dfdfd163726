// Signals that reach threads in the game (sched.h, "signals").
#include "runtime/sched_signals.h"

#include "abi/status.h"
#include "runtime/sched_state.h"
#include "runtime/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

namespace heddle::rt {
namespace {

uint32_t g_seen;  // signals that have arrived; a futex word

// /proc/self/task/TID/status.
struct KernelStatus {
  explicit KernelStatus(uint32_t tid) {
    char path[64];
    format_text(path, sizeof path, "/proc/self/task/%u/status", tid);
    const long fd = raw_syscall(SYS_open, as_long(path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    raw_syscall(SYS_read, fd, as_long(text), sizeof text - 1);
    raw_close(static_cast<int>(fd));
  }

  // The set on the line that starts with `name`, "SigBlk:" say.
  uint64_t set(const char* name) const {
    const char* at = strstr(text, name);
    if (at == nullptr) return 0;
    uint64_t result = 0;
    for (at += strlen(name); *at == '\t' || *at == ' '; ++at) continue;
    for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); ++at) {
      result = result << 4 | static_cast<uint64_t>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    }
    return result;
  }

  char text[2048] = {};
};

uint64_t bit_of(int signal) {
  return uint64_t{1} << ((signal - 1) & 63);
}

bool blocks(const Thread* thread, int signal) {
  return (KernelStatus(thread->tid).set("SigBlk:") & bit_of(signal)) != 0;
}

bool lives(const Thread* thread) {
  return thread->state != State::kDead && thread->state != State::kUnused;
}

State state_now(const Thread* thread) {
  return static_cast<const volatile Thread*>(thread)->state;
}

// A thread that was created a moment ago has signals blocked until it gets to us.
void wait_until_in_game(const Thread* thread) {
  constexpr timespec kPause = {0, 20000};
  while (!__atomic_load_n(&thread->in_game, __ATOMIC_ACQUIRE)) {
    raw_syscall(SYS_nanosleep, as_long(&kPause), 0);
  }
}

// The holder, on behalf of threads that were nudged and have not yet said so.
void take_nudges() {
  for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
    Thread* thread = &g_sched.threads[i];
    if (thread == t_self || !lives(thread) || !take_nudge(thread)) continue;
    if (thread->state == State::kBlocked) enter_ready(thread);
  }
}

// The signal was sent to `target`, which is in a system call: returns when it is back, or takes
// no note of it.
void settle(const Thread* target, int signal, uint32_t before) {
  constexpr int kTries = 500;
  constexpr timespec kPause = {0, 400000};
  for (int tries = 0; tries < kTries; ++tries) {
    if (state_now(target) != State::kOutside) break;
    if (__atomic_load_n(&g_seen, __ATOMIC_ACQUIRE) != before) break;
    if (blocks(target, signal)) return;
    futex_wait(&g_seen, before, &kPause);
  }
  const Busy busy(t_self);
  lock_as_holder();
  take_nudges();
  arm();
  sched_unlock();
}

Wait* wait_for_signal(const Thread* target, int signal) {
  for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
    Wait* wait = g_sched.blocked.items[i];
    if ((target == nullptr || wait->thread == target) && (wait->signals & bit_of(signal)) != 0) {
      return wait;
    }
  }
  return nullptr;
}

// False when there is no room: then the kernel has to carry it.
bool post(Thread* target, const Letter& letter) {
  const Busy busy(t_self);
  lock_as_holder();
  bool room = target->letter_count < Thread::kMostLetters;
  bool pending = false;
  for (unsigned i = 0; i < target->letter_count; ++i) {
    // As in the kernel, a standard signal is pending once.
    pending |= target->letters[i].signal == letter.signal && !is_queued(letter.signal);
  }
  if (room && !pending) target->letters[target->letter_count++] = letter;
  if (target != t_self) {
    target->nudged = true;
    if (target->state == State::kBlocked) enter_ready(target);
    arm();
  }
  sched_unlock();
  return room || pending;
}

// `target` blocks the signal: the kernel keeps it until it is taken.
long leave_pending(const Thread* target, const Letter& letter) {
  siginfo_t info = {};
  info.si_signo = letter.signal;
  info.si_code = letter.code;
  info.si_pid = static_cast<pid_t>(raw_getpid());
  info.si_uid = static_cast<uid_t>(raw_syscall(SYS_getuid));
  info.si_value.sival_ptr = letter.value;
  const Busy busy(t_self);
  lock_as_holder();
  const long result =
      raw_syscall(SYS_rt_tgsigqueueinfo, raw_getpid(), target->tid, letter.signal, as_long(&info));
  if (Wait* wait = wait_for_signal(target, letter.signal)) end_wait(wait, WakeReason::kWoken);
  arm();
  sched_unlock();
  return result;
}

}  // namespace

bool sched_in_scheduler() {
  return t_self != nullptr && t_self->busy;
}

void sched_nudge() {
  if (t_self == nullptr) return;
  __atomic_fetch_or(&t_self->turn, kNudgeBit, __ATOMIC_RELEASE);
  wake_idler();  // that may be this very thread, asleep below the handler
}

void sched_handler_ran(bool restarts) {
  if (t_self == nullptr) return;
  t_self->handled = true;
  if (!restarts) t_self->interrupted = true;
}

void sched_note_signal_from_outside() {
  __atomic_fetch_or(&g_sched.sources, HEDDLE_SOURCE_SIGNAL, __ATOMIC_RELAXED);
}

void sched_signal_seen() {
  __atomic_fetch_add(&g_seen, 1, __ATOMIC_RELEASE);
  futex_wake(&g_seen, 1);
}

void poll_signals() {
  for (unsigned i = 0; i < g_sched.blocked.count;) {
    Wait* wait = g_sched.blocked.items[i];
    bool pending = false;
    if (wait->signals != 0) {
      const KernelStatus status(wait->thread->tid);
      pending = ((status.set("SigPnd:") | status.set("ShdPnd:")) & wait->signals) != 0;
    }
    if (pending) {
      sched_note_signal_from_outside();
      end_wait(wait, WakeReason::kWoken);
    } else {
      ++i;
    }
  }
}

long send_to_thread(Thread* target, const Letter& letter, KernelSend send, const void* argument) {
  if (target == t_self || !lives(target)) return send(argument);
  wait_until_in_game(target);
  if (target->state == State::kOutside) {
    const uint32_t before = __atomic_load_n(&g_seen, __ATOMIC_ACQUIRE);
    const long result = send(argument);
    if (result == 0) settle(target, letter.signal, before);
    return result;
  }
  if (blocks(target, letter.signal)) return leave_pending(target, letter) == 0 ? 0 : send(argument);
  if (has_handler(letter.signal) && post(target, letter)) return 0;
  return send(argument);
}

// The kernel prefers the first thread; so do we, and then take them in the order of their numbers.
long send_to_process(const Letter& letter, KernelSend send, const void* argument) {
  bool somebody_outside = false;
  if (has_handler(letter.signal)) {
    for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
      Thread* thread = &g_sched.threads[i];
      if (!lives(thread)) continue;
      wait_until_in_game(thread);
      if (blocks(thread, letter.signal)) continue;
      somebody_outside |= thread->state == State::kOutside;
      if (thread->state != State::kOutside && post(thread, letter)) return 0;
    }
  }
  const Wait* wait = somebody_outside ? nullptr : wait_for_signal(nullptr, letter.signal);
  if (wait != nullptr && leave_pending(wait->thread, letter) == 0) return 0;
  return send(argument);
}

}  // namespace heddle::rt
