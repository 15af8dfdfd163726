// The process as a whole: fork, exec, the ways to end that are not exit(), failed assertions.
//
// exit() itself is not interposed: main's return does not go through it. The status comes from
// on_exit and the end of the trace from the library's destructor (start.cc).
#include "runtime/raw.h"
#include "runtime/real.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sched.h"
#include "runtime/signals.h"
#include "runtime/start.h"
#include "runtime/stream.h"

#include <assert.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

using namespace heddle::rt;

namespace {

// In the child of a vfork everything still belongs to the parent.
bool own_process() {
  return g_stream.pid == raw_getpid();
}

void last_word(int status) {
  if (dormant() || !own_process()) return;
  rec_finish(heddle::RunEnd::kExit, static_cast<uint64_t>(status), nullptr);
}

}  // namespace

RT_EXPORT void _exit(int status) {
  last_word(status);
  raw_exit_group(status);
}

RT_EXPORT void _Exit(int status) {
  last_word(status);
  raw_exit_group(status);
}

RT_EXPORT void quick_exit(int status) {
  // Its handlers still run, unrecorded: afterwards the C library ends the process without asking
  // anybody, so this is the last place to speak.
  last_word(status);
  REAL(quick_exit)(status);
  __builtin_unreachable();
}

RT_EXPORT void __assert_fail(const char* assertion, const char* file, unsigned int line,
                             const char* function) {
  if (!passive()) {
    char text[1024];
    const size_t length = format_text(text, sizeof text, "%s:%u: %s: assertion `%s` failed", file,
                                      line, function == nullptr ? "?" : function, assertion);
    rec_text(TextKind::kAssertion, text, length);
    note_assertion(text);
  }
  REAL(__assert_fail)(assertion, file, line, function);
  __builtin_unreachable();
}

// ---- fork -----------------------------------------------------------------------------------
//
// Not interposed, but watched by handlers of pthread_atfork. They are registered before anybody
// else's: so in the parent the others' handlers run as normal code, before ours and after ours, and
// in the child ours is the first to run.

namespace heddle::rt {

void watch_forks() {
  pthread_atfork(
      [] {
        if (!passive()) sched_fork_prepare();
      },
      [] {
        if (!passive()) sched_fork_parent();
      },
      [] {
        if (passive()) return;
        rec_after_fork_in_child();
        sched_fork_child();
      });
}

}  // namespace heddle::rt

// ---- exec -----------------------------------------------------------------------------------
//
// Nothing is written: the collector sees the connection end while the process lives on. But the
// new program must not inherit that we pinned this one.

RT_EXPORT int execve(const char* path, char* const arguments[], char* const environment[]) {
  if (!dormant()) sched_unpin();
  return REAL(execve)(path, arguments, environment);
}

RT_EXPORT int execv(const char* path, char* const arguments[]) {
  return execve(path, arguments, environ);
}

RT_EXPORT int execvpe(const char* file, char* const arguments[], char* const environment[]) {
  if (!dormant()) sched_unpin();
  return REAL(execvpe)(file, arguments, environment);
}

RT_EXPORT int execvp(const char* file, char* const arguments[]) {
  return execvpe(file, arguments, environ);
}

RT_EXPORT int fexecve(int fd, char* const arguments[], char* const environment[]) {
  if (!dormant()) sched_unpin();
  return REAL(fexecve)(fd, arguments, environment);
}

namespace {

constexpr size_t kMostArguments = 4096;

// Collects a variable argument list up to its null pointer; the array lives in the caller's frame.
#define RT_COLLECT_ARGUMENTS(first)                              \
  char* arguments[kMostArguments];                               \
  size_t count = 0;                                              \
  va_list list;                                                  \
  va_start(list, first);                                         \
  for (const char* argument = first; count + 1 < kMostArguments; \
       argument = va_arg(list, const char*)) {                   \
    arguments[count++] = const_cast<char*>(argument);            \
    if (argument == nullptr) break;                              \
  }                                                              \
  arguments[kMostArguments - 1] = nullptr;

}  // namespace

RT_EXPORT int execl(const char* path, const char* first, ...) {
  RT_COLLECT_ARGUMENTS(first)
  va_end(list);
  return execve(path, arguments, environ);
}

RT_EXPORT int execlp(const char* file, const char* first, ...) {
  RT_COLLECT_ARGUMENTS(first)
  va_end(list);
  return execvpe(file, arguments, environ);
}

RT_EXPORT int execle(const char* path, const char* first, ...) {
  RT_COLLECT_ARGUMENTS(first)
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  return execve(path, arguments, environment);
}
