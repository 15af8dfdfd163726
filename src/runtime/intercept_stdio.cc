// Streams of the C library: their locks, and input that comes from outside.
//
// printf and kin lock the stream inside the C library, where nobody sees it, but between two
// points: no switch happens while they hold it. Only flockfile holds a stream's lock for longer. So
// while some thread does that, every function that locks a stream takes the lock first, in a way
// that can wait (the lock is recursive). A holder is switched only where it must be, because
// functions that are not in this file would sleep in the kernel, and leave it to the watchdog.
//
// A function that reads is about to sleep when the buffer is empty and the descriptor not ready:
// then it waits in the scheduler, like read().
#define __NO_INLINE__ 1  // the C library's own inline versions of what is defined here
#include "abi/status.h"
#include "runtime/descriptors.h"
#include "runtime/intercept.h"

#include <stdarg.h>
#include <stdio.h>

extern "C" {
int __printf_chk(int flag, const char* format, ...);
int __fprintf_chk(FILE* stream, int flag, const char* format, ...);
int __vprintf_chk(int flag, const char* format, va_list arguments);
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list arguments);
int __isoc99_vfscanf(FILE* stream, const char* format, va_list arguments);
ssize_t __getdelim(char** line, size_t* size, int end, FILE* stream);
}

namespace heddle::rt {
namespace {

void lock_stream(FILE* stream, const void* pc) {
  while (REAL(ftrylockfile)(stream) != 0) {
    sched_block(PointKind::kLock, stream, kWaitStream, kNoDeadline, kInterruptNever, pc);
  }
}

void unlock_stream(FILE* stream) {
  REAL(funlockfile)(stream);
  sched_wake(stream, 1);
}

bool another_holds() {
  return sched_active() && g_sched.stream_locks != t_self->stdio_depth;
}

template <typename Call>
auto with_stream(FILE* stream, const void* pc, Call call) {
  if (stream == nullptr || !another_holds()) return call();
  lock_stream(stream, pc);
  const auto result = call();
  const int error = errno;
  unlock_stream(stream);
  errno = error;
  return result;
}

template <typename Call>
auto with_input(FILE* stream, const void* pc, Call call) {
  if (sched_active() && stream->_IO_read_ptr >= stream->_IO_read_end) {
    await_input(stream->_fileno, "a stream", pc);
  }
  return with_stream(stream, pc, call);
}

void locked(FILE* stream, const void* pc) {
  ++t_self->stdio_depth;
  ++g_sched.stream_locks;
  t_self->no_preempt = true;
  rec_lock(EventKind::kAcquire, stream, LockMode::kExclusive, pc);
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

RT_EXPORT void flockfile(FILE* stream) noexcept {
  if (!sched_active()) return REAL(flockfile)(stream);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kLock, stream, pc);
  lock_stream(stream, pc);
  locked(stream, pc);
}

RT_EXPORT int ftrylockfile(FILE* stream) noexcept {
  if (!sched_active()) return REAL(ftrylockfile)(stream);
  const void* pc = RT_CALLER;
  sched_point(PointKind::kTryLock, stream, pc);
  const int error = REAL(ftrylockfile)(stream);
  if (error == 0) {
    locked(stream, pc);
  } else {
    rec_lock(EventKind::kAcquire, stream, LockMode::kExclusive, pc, OpOutcome::kFailed);
  }
  return error;
}

RT_EXPORT void funlockfile(FILE* stream) noexcept {
  if (!sched_active()) return REAL(funlockfile)(stream);
  rec_lock(EventKind::kRelease, stream, LockMode::kExclusive, RT_CALLER);
  unlock_stream(stream);
  if (t_self->stdio_depth != 0) {
    --t_self->stdio_depth;
    --g_sched.stream_locks;
  }
  t_self->no_preempt = t_self->stdio_depth != 0;
}

// ---- output -----------------------------------------------------------------------------------

RT_EXPORT int fputc(int c, FILE* stream) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(fputc)(c, stream); });
}
RT_EXPORT int putc(int c, FILE* stream) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(putc)(c, stream); });
}
RT_EXPORT int putchar(int c) {
  return with_stream(stdout, RT_CALLER, [&] { return REAL(putchar)(c); });
}
RT_EXPORT int fputs(const char* text, FILE* stream) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(fputs)(text, stream); });
}
RT_EXPORT int puts(const char* text) {
  return with_stream(stdout, RT_CALLER, [&] { return REAL(puts)(text); });
}
RT_EXPORT size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(fwrite)(data, size, count, stream); });
}
RT_EXPORT int fflush(FILE* stream) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(fflush)(stream); });
}
RT_EXPORT int vfprintf(FILE* stream, const char* format, va_list arguments) {
  return with_stream(stream, RT_CALLER, [&] { return REAL(vfprintf)(stream, format, arguments); });
}
RT_EXPORT int vprintf(const char* format, va_list arguments) {
  return with_stream(stdout, RT_CALLER, [&] { return REAL(vprintf)(format, arguments); });
}
RT_EXPORT int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list arguments) {
  return with_stream(stream, RT_CALLER,
                     [&] { return REAL(__vfprintf_chk)(stream, flag, format, arguments); });
}
RT_EXPORT int __vprintf_chk(int flag, const char* format, va_list arguments) {
  return with_stream(stdout, RT_CALLER,
                     [&] { return REAL(__vprintf_chk)(flag, format, arguments); });
}

RT_EXPORT int fprintf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result =
      with_stream(stream, RT_CALLER, [&] { return REAL(vfprintf)(stream, format, arguments); });
  va_end(arguments);
  return result;
}

RT_EXPORT int printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result =
      with_stream(stdout, RT_CALLER, [&] { return REAL(vprintf)(format, arguments); });
  va_end(arguments);
  return result;
}

RT_EXPORT int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = with_stream(
      stream, RT_CALLER, [&] { return REAL(__vfprintf_chk)(stream, flag, format, arguments); });
  va_end(arguments);
  return result;
}

RT_EXPORT int __printf_chk(int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result =
      with_stream(stdout, RT_CALLER, [&] { return REAL(__vprintf_chk)(flag, format, arguments); });
  va_end(arguments);
  return result;
}

// ---- input ------------------------------------------------------------------------------------

RT_EXPORT int fgetc(FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(fgetc)(stream); });
}
RT_EXPORT int getc(FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(getc)(stream); });
}
RT_EXPORT int getchar() {
  return with_input(stdin, RT_CALLER, [] { return REAL(getchar)(); });
}
RT_EXPORT char* fgets(char* text, int size, FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(fgets)(text, size, stream); });
}
RT_EXPORT size_t fread(void* data, size_t size, size_t count, FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(fread)(data, size, count, stream); });
}
RT_EXPORT ssize_t getline(char** line, size_t* size, FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(getline)(line, size, stream); });
}
RT_EXPORT ssize_t getdelim(char** line, size_t* size, int end, FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(getdelim)(line, size, end, stream); });
}
RT_EXPORT ssize_t __getdelim(char** line, size_t* size, int end, FILE* stream) {
  return with_input(stream, RT_CALLER, [&] { return REAL(__getdelim)(line, size, end, stream); });
}
RT_EXPORT int __isoc99_vfscanf(FILE* stream, const char* format, va_list arguments) {
  return with_input(stream, RT_CALLER,
                    [&] { return REAL(__isoc99_vfscanf)(stream, format, arguments); });
}

extern "C" int __isoc99_fscanf(FILE* stream, const char* format, ...);
RT_EXPORT int __isoc99_fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = with_input(stream, RT_CALLER,
                                [&] { return REAL(__isoc99_vfscanf)(stream, format, arguments); });
  va_end(arguments);
  return result;
}

extern "C" int __isoc99_scanf(const char* format, ...);
RT_EXPORT int __isoc99_scanf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = with_input(stdin, RT_CALLER,
                                [&] { return REAL(__isoc99_vfscanf)(stdin, format, arguments); });
  va_end(arguments);
  return result;
}
