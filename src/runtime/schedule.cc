#include "runtime/schedule.h"

#include "abi/status.h"
#include "runtime/modules.h"
#include "runtime/no_size_signal.h"
#include "runtime/strategy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern "C" char* program_invocation_short_name;

namespace heddle::rt {
namespace {

constexpr size_t kGrowth = 1 << 20;
constexpr size_t kLongestLine = 512;

// The schedule file, written through a mapping.
struct Writer {
  int fd = -1;
  char* data = nullptr;
  size_t used = 0;
  size_t size = 0;
};
Writer g_writer;
heddle_status* g_status;
bool g_diverged;

void drop_writer() {
  if (g_writer.data != nullptr) {
    raw_syscall(SYS_munmap, as_long(g_writer.data), static_cast<long>(g_writer.size));
  }
  if (g_writer.fd >= 0) raw_close(g_writer.fd);
  g_writer = {};
}

// Writing to a mapping for which the disk has no room would end the program, so the room is taken
// first.
bool make_room(size_t size) {
  const NoSizeSignal guard;
  const long taken = raw_syscall(SYS_fallocate, g_writer.fd, 0, static_cast<long>(g_writer.size),
                                 static_cast<long>(size - g_writer.size));
  if (taken != -EOPNOTSUPP) return taken >= 0;
  return raw_syscall(SYS_ftruncate, g_writer.fd, static_cast<long>(size)) >= 0;
}

bool grow() {
  const size_t size = g_writer.size + kGrowth;
  if (!make_room(size)) return false;
  const long mapping =
      g_writer.data == nullptr
          ? raw_syscall(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE, MAP_SHARED,
                        g_writer.fd, 0)
          : raw_syscall(SYS_mremap, as_long(g_writer.data), static_cast<long>(g_writer.size),
                        static_cast<long>(size), MREMAP_MAYMOVE);
  if (mapping < 0 && mapping > -4096) return false;
  g_writer.data = reinterpret_cast<char*>(mapping);
  g_writer.size = size;
  return true;
}

__attribute__((format(printf, 1, 2))) void put_line(const char* format, ...) {
  if (g_writer.fd < 0) return;
  if (g_writer.size - g_writer.used < kLongestLine && !grow()) {
    say("schedule_out: no space; the schedule ends here");
    raw_syscall(SYS_ftruncate, g_writer.fd, static_cast<long>(g_writer.used));
    drop_writer();
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  g_writer.used +=
      format_text_v(g_writer.data + g_writer.used, kLongestLine - 1, format, arguments);
  va_end(arguments);
  g_writer.data[g_writer.used++] = '\n';
}

// The command line, quoted for a shell; left out when it is too long for a line.
void put_command() {
  char words[kLongestLine / 2];
  const long fd = raw_syscall(SYS_open, as_long("/proc/self/cmdline"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const long got = raw_syscall(SYS_read, fd, as_long(words), sizeof words);
  raw_close(static_cast<int>(fd));
  if (got <= 0 || got == static_cast<long>(sizeof words)) return;
  char line[kLongestLine];
  size_t used = 0;
  for (long at = 0; at < got;) {
    if (used + 8 > sizeof line) return;
    if (at != 0) line[used++] = ' ';
    line[used++] = '\'';
    for (; at < got && words[at] != '\0'; ++at) {
      if (used + 8 > sizeof line || words[at] == '\n') return;
      if (words[at] == '\'') {
        memcpy(line + used, "'\\'", 3);
        used += 3;
      }
      line[used++] = words[at];
    }
    line[used++] = '\'';
    ++at;
  }
  line[used] = '\0';
  put_line("command %s", line);
}

void open_file(const char* path) {
  const long fd =
      raw_syscall(SYS_open, as_long(path), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    say("schedule_out: cannot write %s (error %ld); no schedule is kept", path, -fd);
    return;
  }
  g_writer.fd = static_cast<int>(fd);
  put_line("heddle-schedule 1");
  put_line("program %s", program_invocation_short_name);
  put_command();
  put_line("build-id %s", program_build_id());
  put_line("points %s", g_sched.points_mode);
  put_line("strategy %s seed %lu", g_strategy->name, rt_option(seed));
}

// For a process that is not the first of its run.
void open_own_file() {
  char path[Options::kTextSize + 32];
  format_text(path, sizeof path, "%s.%u", rt_option(schedule_out), raw_getpid());
  open_file(path);
}

void open_status() {
  if (rt_option(status_fd) == 0) return;
  const long mapping = raw_syscall(SYS_mmap, 0, sizeof(heddle_status), PROT_READ | PROT_WRITE,
                                   MAP_SHARED, static_cast<long>(rt_option(status_fd)), 0);
  raw_close(static_cast<int>(rt_option(status_fd)));  // it is not the program's
  if (mapping < 0 && mapping > -4096) {
    say("status_fd=%lu cannot be mapped; ignored", rt_option(status_fd));
    return;
  }
  g_status = reinterpret_cast<heddle_status*>(mapping);
  // A program that this one executes inherits the environment, but not the right to speak for it.
  if (g_status->magic != 0) {
    g_status = nullptr;
    return;
  }
  g_status->pid = raw_getpid();
  g_status->magic = HEDDLE_STATUS_MAGIC;
}

}  // namespace

const char* point_kind_name(PointKind kind) {
  switch (kind) {
    case PointKind::kAccess:
      return "access";
    case PointKind::kAtomic:
      return "atomic";
    case PointKind::kLock:
      return "lock";
    case PointKind::kTryLock:
      return "trylock";
    case PointKind::kUnlock:
      return "unlock";
    case PointKind::kCondWait:
      return "condwait";
    case PointKind::kCondSignal:
      return "signal";
    case PointKind::kSemWait:
      return "semwait";
    case PointKind::kSemPost:
      return "sempost";
    case PointKind::kBarrier:
      return "barrier";
    case PointKind::kOnce:
      return "once";
    case PointKind::kCreate:
      return "create";
    case PointKind::kJoin:
      return "join";
    case PointKind::kThreadEnd:
      return "end";
    case PointKind::kYield:
      return "yield";
    case PointKind::kSleep:
      return "sleep";
    case PointKind::kFutex:
      return "futex";
    case PointKind::kSyscall:
      return "syscall";
    case PointKind::kWake:
      return "wake";
    case PointKind::kStart:
      return "start";
    case PointKind::kMemory:
      return "memory";
  }
  return "?";
}

// The first process of a run says so in its environment. Programs that it starts inherit the
// options, too, but the schedule is not theirs.
bool schedule_is_ours() {
  static const char kLeader[] = "HEDDLE_LEADER";
  char own[24];
  format_text(own, sizeof own, "%u", raw_getpid());
  const Inside guard;
  const char* leader = getenv(kLeader);
  if (leader != nullptr) return strcmp(leader, own) == 0;
  setenv(kLeader, own, 1);
  return true;
}

void schedule_open() {
  const bool ours = schedule_is_ours();
  if (ours) open_status();
  if (rt_option(schedule_out)[0] == '\0') return;
  if (ours) {
    open_file(rt_option(schedule_out));
  } else {
    open_own_file();
  }
}

void schedule_after_fork_in_child() {
  g_status = nullptr;
  if (g_writer.fd < 0) return;
  drop_writer();
  open_own_file();
}

void log_decision(Thread* self, PointKind kind, Thread* chosen, const void* pc) {
  rec_decision(g_sched.points, chosen->id);
  if (g_writer.fd < 0) return;
  char place[128] = "";
  if (pc != nullptr) format_place(place, sizeof place, pc);
  put_line("at %u.%lu %s %u %s", self->id, self->steps, point_kind_name(kind), chosen->id, place);
}

void schedule_close() {
  put_line("end %lu points hash %lx", g_sched.points, g_sched.hash);
  if (g_writer.fd >= 0) {
    raw_syscall(SYS_ftruncate, g_writer.fd, static_cast<long>(g_writer.used));
  }
  drop_writer();
}

bool schedule_has_diverged() {
  return g_diverged;
}

void schedule_diverged(const char* format, ...) {
  if (g_diverged) return;
  g_diverged = true;
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_text_v(text, sizeof text, format, arguments);
  va_end(arguments);
  say("the replay left its schedule: %s", text);
  rec_text(TextKind::kNote, text, length);
  if (g_status != nullptr) {
    memcpy(g_status->diverged_at, text, length + 1);
    g_status->diverged = 1;
  }
}

void sched_finish(RunEnd end, uint64_t value, const char* text) {
  strategy_finish();
  schedule_close();
  const bool failed = end != RunEnd::kExit || value != 0;
  // (A deadlock or hang has stopped already, a crash stops by itself.)
  if (failed && end == RunEnd::kExit && rt_option(stop_at_end)) {
    raw_syscall(SYS_tgkill, raw_getpid(), raw_gettid(), SIGTRAP);
  }
  if (g_status == nullptr) return;
  g_status->end_kind = static_cast<uint32_t>(end);
  g_status->end_value = value;
  g_status->points = g_sched.points;
  g_status->switches = g_sched.switches;
  g_status->hash = g_sched.hash;
  g_status->threads = g_sched.thread_count;
  g_status->seized = g_sched.seized;
  g_status->sources = g_sched.sources;
  if (text != nullptr) strncpy(g_status->text, text, HEDDLE_STATUS_TEXT - 1);
  __atomic_store_n(&g_status->ended, 1, __ATOMIC_RELEASE);
}

}  // namespace heddle::rt
