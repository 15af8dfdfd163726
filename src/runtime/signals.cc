#include "runtime/signals.h"

#include "runtime/raw.h"
#include "runtime/real.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sched_state.h"
#include "runtime/start.h"
#include "runtime/stream.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace heddle::rt {
namespace {

constexpr int kSignals = 65;
constexpr size_t kAlternateStack = 64 * 1024;
constexpr unsigned kPendingMost = 8;

struct sigaction g_actions[kSignals];  // what the program believes is installed
char g_assertion[1024];

struct Pending {
  int count;
  siginfo_t queue[kPendingMost];
};
#define RT_TLS thread_local __attribute__((tls_model("initial-exec")))
RT_TLS Pending t_pending;
RT_TLS int t_synchronous;        // depth of handlers above an open segment
RT_TLS uint64_t* t_interrupted;  // the cursor of that segment
RT_TLS uint64_t t_fault;         // why, as close_open_records wants it
RT_TLS void* t_alternate_stack;

void* g_free_stacks = nullptr;  // a list through their first word; the holder's

bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

bool is_synchronous(int signal, const siginfo_t* info) {
  if (!is_fault(signal)) return false;
  return info->si_code > 0 || info->si_pid == static_cast<pid_t>(raw_getpid());
}

// Runs the program's handler the way the kernel would.
void run_handler(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = g_actions[signal];
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction reset = {};
    reset.sa_handler = SIG_DFL;
    sigaction(signal, &reset, nullptr);
  }
  uint64_t mask = kernel_mask(action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= uint64_t{1} << ((signal - 1) & 63);
  const uint64_t before = set_mask(SIG_BLOCK, mask);
  const int saved_errno = errno;
  const int depth = t_inside;
  t_inside = 0;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  t_inside = depth;
  errno = saved_errno;
  set_mask(SIG_SETMASK, before);
}

void note_pending(const siginfo_t* info) {
  for (int i = 0; i < t_pending.count; ++i) {
    // As in the kernel, a standard signal is pending once.
    if (t_pending.queue[i].si_signo == info->si_signo && info->si_signo < SIGRTMIN) return;
  }
  if (t_pending.count < static_cast<int>(kPendingMost)) t_pending.queue[t_pending.count++] = *info;
  __atomic_store_n(&__heddle_tls.limit, nullptr, __ATOMIC_RELAXED);
}

// What the record of a plain loop says about how it ended (abi/abi.h, "loops"); 0: unknown.
uint64_t fault_of(int signal, const siginfo_t* info, const void* context) {
  constexpr uint64_t kWriting = 2;  // bit of the processor's error code
  const bool missing = (signal == SIGSEGV && info->si_code == SEGV_MAPERR) ||
                       (signal == SIGBUS && info->si_code == BUS_ADRERR);
  const bool forbidden = signal == SIGSEGV && info->si_code == SEGV_ACCERR;
  if (!missing && !forbidden) return 0;
  const auto* machine = static_cast<const ucontext_t*>(context);
  const bool writing = (machine->uc_mcontext.gregs[REG_ERR] & kWriting) != 0;
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  return address / HEDDLE_FAULT_PAGE * HEDDLE_FAULT_PAGE | HEDDLE_FAULT_KNOWN |
         (forbidden && writing ? HEDDLE_FAULT_WRITE : 0);
}

// A loop that gathers, in the round that it has begun; returns the end of its record. What it has
// not gathered is 0.
uint64_t* close_gathering(uint64_t* record, const heddle_slot* slot, uint64_t fault) {
  uint64_t* const words = record + 1 + slot->words;
  uint64_t* end = words;
  while (*end != 0) ++end;
  if (static_cast<int64_t>(record[1]) >= 0) return end;  // it is over
  const uint64_t rounds = static_cast<uint64_t>(end - words) / slot->round_words + 1;
  record[0] |= 1;
  record[1] = ~rounds;
  end = words + rounds * slot->round_words;
  *end = fault;
  return end + 1;
}

// The records from `at` that were begun and not finished are closed as paused.
uint64_t* close_open_records(uint64_t* at, uint64_t fault) {
  while (*at != 0 && *at >> 56 == 0) {
    const auto* slot = reinterpret_cast<const heddle_slot*>(*at);
    if (slot->kind == HEDDLE_SLOT_LOOP && slot->round_words != 0) {
      at = close_gathering(at, slot, fault);
      continue;
    }
    uint64_t* end = at + 1 + slot->words;
    if (*end == 0) {
      *at |= 1;
      if (slot->kind == HEDDLE_SLOT_LOOP) *end = fault;
      return end + 1;
    }
    at = end;
  }
  return at;
}

bool segment_open() {
  return has_cursor() && g_stream.recording && !g_stream.region.private_memory &&
         *__heddle_tls.cursor != 0;
}

// A signal that the kernel has delivered.
bool next_pending(siginfo_t* info) {
  if (t_pending.count == 0) return false;
  const uint64_t before = set_mask(SIG_BLOCK, ~uint64_t{0});
  *info = t_pending.queue[0];
  --t_pending.count;
  memmove(&t_pending.queue[0], &t_pending.queue[1],
          static_cast<size_t>(t_pending.count) * sizeof(siginfo_t));
  set_mask(SIG_SETMASK, before);
  if (t_pending.count == 0) __heddle_tls.limit = g_stream.limit;
  return true;
}

// One that another thread has sent and that is not blocked, inside a handler say.
bool next_letter(siginfo_t* info) {
  Thread* self = sched_self();
  if (self == nullptr || self->letter_count == 0) return false;
  const uint64_t blocked = set_mask(SIG_BLOCK, 0);
  unsigned at = 0;
  while (at < self->letter_count && (blocked >> (self->letters[at].signal - 1) & 1) != 0) ++at;
  if (at == self->letter_count) return false;
  const Letter letter = self->letters[at];
  --self->letter_count;
  for (; at < self->letter_count; ++at) self->letters[at] = self->letters[at + 1];
  *info = {};
  info->si_signo = letter.signal;
  info->si_code = letter.code;
  info->si_pid = static_cast<pid_t>(raw_getpid());
  info->si_uid = static_cast<uid_t>(raw_syscall(SYS_getuid));
  info->si_value.sival_ptr = letter.value;
  return true;
}

void run_synchronous(int signal, siginfo_t* info, void* context) {
  if (!segment_open()) {
    run_handler(signal, info, context);
    return;
  }
  uint64_t* const cursor = __heddle_tls.cursor;
  ++t_synchronous;
  t_interrupted = cursor;
  t_fault = fault_of(signal, info, context);
  g_stream.cursor = cursor;
  g_stream.holder = nullptr;
  g_sched.quick = nobody();
  __heddle_tls.cursor = closed_cursor();
  __heddle_tls.limit = nullptr;
  run_handler(signal, info, context);
  --t_synchronous;
  g_stream.holder = &__heddle_tls;
  __heddle_tls.cursor = cursor;
  __heddle_tls.limit = nullptr;  // the next segment puts it right
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (is_synchronous(signal, info)) {
    run_synchronous(signal, info, context);
    return;
  }
  // When a signal of another process, of a timer or of a child comes is not the
  // schedule's choice.
  const bool sent_by_itself =
      (info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE) &&
      info->si_pid == static_cast<pid_t>(raw_getpid());
  if (!sent_by_itself) sched_note_signal_from_outside();
  if (sched_in_scheduler()) {
    note_pending(info);
    sched_nudge();
    sched_signal_seen();
    return;
  }
  if (inside() || has_cursor()) {
    note_pending(info);
    return;
  }
  if (sched_self() == nullptr || t_synchronous != 0) {
    run_handler(signal, info, context);  // a thread that is none of ours
    return;
  }
  sched_join_game();
  run_handler(signal, info, context);
  sched_leave_game();
}

// The frames below the one that the signal interrupted.
size_t interrupted_stack(const void** frames, size_t capacity, const void* pc) {
  const void* all[256];
  const size_t count = native_stack(all, sizeof all / sizeof all[0]);
  size_t first = 0;
  const auto wanted = reinterpret_cast<uint64_t>(pc);
  for (size_t i = 0; i < count; ++i) {
    const auto frame = reinterpret_cast<uint64_t>(all[i]);
    if (frame == wanted || frame == wanted + 1) {
      first = i;
      break;
    }
  }
  size_t kept = 0;
  for (size_t i = first; i < count && kept < capacity; ++i) frames[kept++] = all[i];
  return kept;
}

void on_fatal(int signal, siginfo_t* info, void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
  const auto* pc = reinterpret_cast<const void*>(machine->uc_mcontext.gregs[REG_RIP]);
  static int g_dying = 0;
  if (g_stream.pid == raw_getpid() && __atomic_exchange_n(&g_dying, 1, __ATOMIC_ACQ_REL) == 0) {
    const Inside guard;
    if (has_cursor() && g_stream.recording && !g_stream.region.private_memory) {
      __heddle_tls.cursor =
          close_open_records(__heddle_tls.cursor, fault_of(signal, info, context));
      const void* frames[128];
      const size_t count = interrupted_stack(frames, 128, pc);
      rec_stack(g_stream.thread, frames, count);
    }
    const bool assertion = signal == SIGABRT && g_assertion[0] != '\0';
    rec_finish(assertion ? RunEnd::kAssertion : RunEnd::kSignal, static_cast<uint64_t>(signal),
               assertion ? g_assertion : nullptr, pc);
  }
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  REAL(sigaction)(signal, &standard, nullptr);
  // A fault repeats itself when this returns; a signal that was sent has to be
  // sent again.
  if (info->si_code <= 0) raw_syscall(SYS_tgkill, raw_getpid(), raw_gettid(), signal);
}

// What the kernel gets for what the program wants.
int install(int signal, const struct sigaction& wanted) {
  struct sigaction action = wanted;
  if (wanted.sa_handler == SIG_DFL && is_fault(signal) && signal != SIGTRAP) {
    action = {};
    action.sa_sigaction = on_fatal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  } else if (wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN) {
    action.sa_sigaction = on_signal;
    action.sa_flags = (wanted.sa_flags & ~(SA_RESETHAND | SA_NODEFER)) | SA_SIGINFO;
  }
  return REAL(sigaction)(signal, &action, nullptr);
}

}  // namespace

bool has_handler(int signal) {
  return signal > 0 && signal < kSignals && g_actions[signal].sa_handler != SIG_DFL &&
         g_actions[signal].sa_handler != SIG_IGN;
}

bool is_queued(int signal) {
  return signal >= SIGRTMIN;
}

uint64_t kernel_mask(const sigset_t& set) {
  uint64_t mask;
  memcpy(&mask, &set, sizeof mask);
  return mask;
}

uint64_t set_mask(int how, uint64_t mask) {
  uint64_t before = 0;
  raw_syscall(SYS_rt_sigprocmask, how, as_long(&mask), as_long(&before), sizeof mask);
  return before;
}

bool signals_pending() {
  return t_pending.count != 0;
}
bool in_synchronous_handler() {
  return t_synchronous != 0;
}

void note_assertion(const char* text) {
  strncpy(g_assertion, text, sizeof g_assertion - 1);
}

void deliver_pending_signals() {
  const Thread* self = sched_self();
  const bool letters = self != nullptr && self->letter_count != 0;
  if ((t_pending.count == 0 && !letters) || dormant() || !has_cursor()) return;
  siginfo_t info;
  while (next_pending(&info) || next_letter(&info)) {
    const bool restarts = (g_actions[info.si_signo].sa_flags & SA_RESTART) != 0;
    ucontext_t context;
    getcontext(&context);
    run_handler(info.si_signo, &info, &context);
    sched_handler_ran(restarts);
  }
}

bool signals_handled() {
  for (int signal = 1; signal < kSignals; ++signal) {
    const auto handler = g_actions[signal].sa_handler;
    if (!is_fault(signal) && handler != SIG_DFL && handler != SIG_IGN) return true;
  }
  return false;
}

void leave_handlers() {
  if (t_synchronous == 0) return;
  t_synchronous = 0;
  if (g_stream.holder != nullptr) return;
  g_stream.holder = &__heddle_tls;
  __heddle_tls.cursor =
      g_stream.recording ? close_open_records(t_interrupted, t_fault) : closed_cursor();
  __heddle_tls.limit = nullptr;
}

void signals_start() {
  for (int signal = 1; signal < kSignals; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || signal == 32 || signal == 33) continue;
    if (REAL(sigaction)(signal, nullptr, &g_actions[signal]) == 0 && is_fault(signal)) {
      install(signal, g_actions[signal]);
    }
  }
  signals_thread_begin();
}

void signals_thread_begin() {
  stack_t present = {};
  raw_syscall(SYS_sigaltstack, 0, as_long(&present));
  if ((present.ss_flags & SS_DISABLE) == 0 || t_alternate_stack != nullptr) return;
  void* stack = g_free_stacks;
  if (stack != nullptr) {
    memcpy(&g_free_stacks, stack, sizeof(void*));
  } else {
    const long mapping =
        raw_syscall(SYS_mmap, 0, static_cast<long>(kAlternateStack), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping < 0 && mapping > -4096) return;
    stack = reinterpret_cast<void*>(mapping);
  }
  t_alternate_stack = stack;
  stack_t wanted = {};
  wanted.ss_sp = stack;
  wanted.ss_size = kAlternateStack;
  raw_syscall(SYS_sigaltstack, as_long(&wanted), 0);
}

void signals_thread_end() {
  if (t_alternate_stack == nullptr) return;
  stack_t present = {};
  raw_syscall(SYS_sigaltstack, 0, as_long(&present));
  if (present.ss_sp == t_alternate_stack) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    raw_syscall(SYS_sigaltstack, as_long(&none), 0);
  }
  memcpy(t_alternate_stack, &g_free_stacks, sizeof(void*));
  g_free_stacks = t_alternate_stack;
  t_alternate_stack = nullptr;
}

}  // namespace heddle::rt

using namespace heddle::rt;

RT_EXPORT int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) {
  if (passive() || signal <= 0 || signal >= kSignals || signal == SIGKILL || signal == SIGSTOP) {
    return REAL(sigaction)(signal, wanted, before);
  }
  const struct sigaction old = g_actions[signal];
  if (wanted != nullptr) {
    const int status = install(signal, *wanted);
    if (status != 0) return status;
    g_actions[signal] = *wanted;
  }
  if (before != nullptr) *before = old;
  return 0;
}

RT_EXPORT sighandler_t signal(int signal, sighandler_t handler) noexcept {
  if (passive()) return REAL(signal)(signal, handler);
  struct sigaction wanted = {};
  wanted.sa_handler = handler;
  wanted.sa_flags = SA_RESTART;
  struct sigaction before = {};
  return sigaction(signal, &wanted, &before) == 0 ? before.sa_handler : SIG_ERR;
}

RT_EXPORT void longjmp(jmp_buf target, int value) noexcept {
  leave_handlers();
  REAL(longjmp)(target, value);
  __builtin_unreachable();
}

RT_EXPORT void _longjmp(jmp_buf target, int value) noexcept {
  leave_handlers();
  REAL(_longjmp)(target, value);
  __builtin_unreachable();
}

RT_EXPORT void siglongjmp(sigjmp_buf target, int value) noexcept {
  leave_handlers();
  REAL(siglongjmp)(target, value);
  __builtin_unreachable();
}

extern "C" void __longjmp_chk(jmp_buf target, int value);
RT_EXPORT void __longjmp_chk(jmp_buf target, int value) {
  leave_handlers();
  REAL(__longjmp_chk)(target, value);
  __builtin_unreachable();
}
