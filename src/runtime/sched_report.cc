// Runs that do not end by themselves: deadlocks and hangs, with every thread's stack, what it waits
// for and who holds it.
#include "abi/status.h"
#include "runtime/clock.h"
#include "runtime/modules.h"
#include "runtime/real.h"
#include "runtime/sched_state.h"

#include <signal.h>
#include <string.h>

namespace heddle::rt {

const char kWaitMutex[] = "mutex";
const char kWaitRwlock[] = "rwlock";
const char kWaitSpin[] = "spin lock";
const char kWaitCond[] = "condition";
const char kWaitSemaphore[] = "semaphore";
const char kWaitBarrier[] = "barrier";
const char kWaitOnce[] = "one-time initialisation";
const char kWaitThread[] = "end of thread";
const char kWaitFutex[] = "futex";
const char kWaitStream[] = "stream";

namespace {

constexpr size_t kMostFrames = 64;
constexpr size_t kTextSize = 3000;

const void* g_frames[kMostFrames];
size_t g_frame_count;
uint32_t g_frames_done;  // futex word

char g_text[kTextSize];
size_t g_length;

__attribute__((format(printf, 1, 2))) void put(const char* format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_text_v(line, sizeof line, format, arguments);
  va_end(arguments);
  say("%s", line);
  if (g_length + length + 2 > kTextSize) return;
  memcpy(g_text + g_length, line, length);
  g_length += length;
  g_text[g_length++] = '\n';
}

// The thread that holds what `wait` waits for, from the C library's own objects.
const Thread* owner_of(const Wait* wait) {
  uint32_t tid = 0;
  if (wait->what == kWaitMutex) {
    const auto* mutex = static_cast<const volatile pthread_mutex_t*>(wait->object);
    tid = static_cast<uint32_t>(mutex->__data.__owner);
  } else if (wait->what == kWaitRwlock) {
    const auto* lock = static_cast<const volatile pthread_rwlock_t*>(wait->object);
    tid = static_cast<uint32_t>(lock->__data.__cur_writer);
  } else if (wait->what == kWaitOnce) {
    for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
      const Thread* thread = &g_sched.threads[i];
      for (unsigned k = 0; k < thread->once_depth; ++k) {
        if (thread->once[k] == wait->object) return thread;
      }
    }
  }
  return tid == 0 ? nullptr : find_kernel_thread(tid);
}

void describe(const Thread* thread) {
  const Wait* wait = thread->wait;
  if (thread->state == State::kRunning) {
    put("thread %u runs", thread->id);
  } else if (thread->state == State::kOutside) {
    put("thread %u is in a system call", thread->id);
  } else if (thread->state == State::kReady || wait == nullptr) {
    put("thread %u is ready to run", thread->id);
  } else if (wait->what == kWaitThread) {
    put("thread %u waits for the end of thread %u", thread->id,
        static_cast<const volatile Thread*>(wait->object)->id);
  } else if (wait->descriptors != nullptr) {
    put("thread %u waits in %s for descriptor %d%s", thread->id, wait->what,
        wait->descriptor_count == 0 ? -1 : wait->descriptors[0].fd,
        wait->descriptor_count > 1 ? " and others" : "");
  } else if (const Thread* owner = owner_of(wait)) {
    put("thread %u waits for %s %p held by thread %u%s", thread->id, wait->what,
        const_cast<const void*>(wait->object), owner->id,
        owner->state == State::kDead ? ", which has ended" : "");
  } else {
    put("thread %u waits for %s %p", thread->id, wait->what, const_cast<const void*>(wait->object));
  }
}

void take_own_stack() {
  g_frame_count = native_stack(g_frames, kMostFrames);
  __atomic_store_n(&g_frames_done, 1, __ATOMIC_RELEASE);
  futex_wake(&g_frames_done, 1);
}

void on_stack_signal(int) {
  take_own_stack();
}

// A running thread is asked by signal, one that waits for its turn by its own word.
bool ask_for_stack(Thread* thread) {
  __atomic_store_n(&g_frames_done, 0, __ATOMIC_RELEASE);
  if (thread == t_self) {
    take_own_stack();
    return true;
  }
  // The one that keeps the light on does not look at its word.
  if (thread->state == State::kRunning || thread->state == State::kOutside ||
      thread == g_sched.holder) {
    const int signal = SIGRTMAX - 1;
    struct sigaction action = {};
    action.sa_handler = on_stack_signal;
    action.sa_flags = SA_ONSTACK;
    REAL(sigaction)(signal, &action, nullptr);
    raw_syscall(SYS_tgkill, raw_getpid(), thread->tid, signal);
  } else {
    __atomic_fetch_or(&thread->turn, kStackBit, __ATOMIC_RELEASE);
    futex_wake(&thread->turn, 1);
  }
  for (int tries = 0; tries < 100; ++tries) {
    if (__atomic_load_n(&g_frames_done, __ATOMIC_ACQUIRE) != 0) return true;
    const timespec wait = {0, 10000000};
    futex_wait(&g_frames_done, 0, &wait);
  }
  return false;
}

bool is_runtime(const char* module) {
  return strncmp(module, "libheddle_rt", 12) == 0;
}

void print_stack(Thread* thread) {
  if (!ask_for_stack(thread)) return;
  rec_stack(thread->id, g_frames, g_frame_count);
  bool inside_runtime = true;
  for (size_t i = 0, shown = 0; i < g_frame_count && shown < 16; ++i) {
    const char* module;
    const unsigned long offset = place_offset(g_frames[i], &module);
    inside_runtime = inside_runtime && is_runtime(module);
    if (inside_runtime) continue;
    put("    #%zu %s+0x%lx", shown++, module, offset);
  }
}

[[noreturn]] void end_run(RunEnd end, int status) {
  for (uint32_t i = 0; i < g_sched.thread_count; ++i) {
    Thread* thread = &g_sched.threads[i];
    if (thread->state == State::kDead || thread->state == State::kUnused) continue;
    describe(thread);
    print_stack(thread);
  }
  g_text[g_length] = '\0';
  if (rt_option(stop_at_end)) raw_syscall(SYS_tgkill, raw_getpid(), raw_gettid(), SIGTRAP);
  rec_finish(end, static_cast<uint64_t>(status), g_text);
  raw_exit_group(status);
}

}  // namespace

void dump_own_stack(Thread*) {
  take_own_stack();
}

void report_deadlock(Thread*) {
  const Inside guard;
  put("deadlock: every thread waits for another");
  end_run(RunEnd::kDeadlock, HEDDLE_EXIT_DEADLOCK);
}

void report_hang() {
  put("hang: the program did not end within %lu seconds", rt_option(timeout));
  end_run(RunEnd::kHang, HEDDLE_EXIT_HANG);
}

}  // namespace heddle::rt
