// Calls that wait for children, file locks and other things without a descriptor to poll. They
// usually return at once and keep the baton, with the watchdog standing by.
#include "abi/status.h"
#include "runtime/intercept.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::rt {

// A call that is usually quick.
template <typename Call>
static auto brief(const void* pc, Call call) {
  sched_point(PointKind::kSyscall, nullptr, pc);
  sched_brief_begin();
  const auto result = call();
  const int error = errno;
  sched_brief_end();
  deliver_pending_signals();
  errno = error;
  return result;
}

// A call that ends when a child does. Most children are short, and what the
// others do meanwhile would be the kernel's choice: they wait, too, for a
// while.
template <typename Call>
static auto child_call(const void* pc, Call call) {
  sched_point(PointKind::kSyscall, nullptr, pc);
  sched_brief_begin(true);
  const auto result = call();
  const int error = errno;
  sched_brief_end();
  deliver_pending_signals();
  errno = error;
  return result;
}

}  // namespace heddle::rt

using namespace heddle::rt;

// ---- children
// -------------------------------------------------------------------------------

RT_EXPORT pid_t wait(int* status) {
  if (!sched_active()) return REAL(wait)(status);
  return child_call(RT_CALLER, [&] { return REAL(wait)(status); });
}

RT_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  if (!sched_active()) return REAL(waitpid)(pid, status, options);
  if ((options & WNOHANG) != 0) {
    return brief(RT_CALLER, [&] { return REAL(waitpid)(pid, status, options); });
  }
  return child_call(RT_CALLER, [&] { return REAL(waitpid)(pid, status, options); });
}

RT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (!sched_active()) return REAL(waitid)(type, id, info, options);
  return child_call(RT_CALLER, [&] { return REAL(waitid)(type, id, info, options); });
}

RT_EXPORT pid_t wait3(int* status, int options, rusage* usage) noexcept {
  if (!sched_active()) return REAL(wait3)(status, options, usage);
  return child_call(RT_CALLER, [&] { return REAL(wait3)(status, options, usage); });
}

RT_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) noexcept {
  if (!sched_active()) return REAL(wait4)(pid, status, options, usage);
  return child_call(RT_CALLER, [&] { return REAL(wait4)(pid, status, options, usage); });
}

RT_EXPORT int system(const char* command) {
  if (!sched_active()) return REAL(system)(command);
  return child_call(RT_CALLER, [&] { return REAL(system)(command); });
}

RT_EXPORT int pclose(FILE* stream) {
  if (!sched_active()) return REAL(pclose)(stream);
  return child_call(RT_CALLER, [&] { return REAL(pclose)(stream); });
}

// ---- files
// ----------------------------------------------------------------------------------

RT_EXPORT int flock(int fd, int operation) noexcept {
  if (!sched_active()) return REAL(flock)(fd, operation);
  return brief(RT_CALLER, [&] { return REAL(flock)(fd, operation); });
}

RT_EXPORT int lockf(int fd, int command, off_t length) {
  if (!sched_active()) return REAL(lockf)(fd, command, length);
  return brief(RT_CALLER, [&] { return REAL(lockf)(fd, command, length); });
}

RT_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!sched_active() || (command != F_SETLKW && command != F_OFD_SETLKW)) {
    return REAL(fcntl)(fd, command, argument);
  }
  return brief(RT_CALLER, [&] { return REAL(fcntl)(fd, command, argument); });
}

RT_EXPORT int fsync(int fd) {
  if (!sched_active()) return REAL(fsync)(fd);
  return brief(RT_CALLER, [&] { return REAL(fsync)(fd); });
}

RT_EXPORT int fdatasync(int fd) {
  if (!sched_active()) return REAL(fdatasync)(fd);
  return brief(RT_CALLER, [&] { return REAL(fdatasync)(fd); });
}

// Opening a FIFO waits for the other end.
RT_EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (!sched_active()) return REAL(open)(path, flags, mode);
  if (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0) {
    g_sched.sources |= HEDDLE_SOURCE_RANDOM;
  }
  sched_brief_begin();
  const int fd = REAL(open)(path, flags, mode);
  const int error = errno;
  sched_brief_end();
  errno = error;
  return fd;
}

// ---- random numbers
// ---------------------------------------------------------------------------
//
// Nothing to wait for, but a run that uses them is not the schedule's alone.

static void note_random() {
  if (sched_active()) g_sched.sources |= HEDDLE_SOURCE_RANDOM;
}

RT_EXPORT ssize_t getrandom(void* out, size_t size, unsigned flags) {
  note_random();
  return REAL(getrandom)(out, size, flags);
}

RT_EXPORT int getentropy(void* out, size_t size) {
  note_random();
  return REAL(getentropy)(out, size);
}

RT_EXPORT uint32_t arc4random() noexcept {
  note_random();
  return REAL(arc4random)();
}

RT_EXPORT void arc4random_buf(void* out, size_t size) noexcept {
  note_random();
  REAL(arc4random_buf)(out, size);
}

RT_EXPORT uint32_t arc4random_uniform(uint32_t limit) noexcept {
  note_random();
  return REAL(arc4random_uniform)(limit);
}

// std::random_device, which asks the processor or the kernel in ways of its
// own.
extern "C" unsigned _ZNSt13random_device9_M_getvalEv(void* device);
RT_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  note_random();
  return REAL(_ZNSt13random_device9_M_getvalEv)(device);
}
