// System calls without errno, cancellation points or interposition: the only way the runtime itself
// talks to the kernel. A negative result is -errno.
#pragma once

#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

namespace heddle::rt {

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

template <typename T>
inline long as_long(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// `shared`: the word lies in memory shared with another process.
inline long futex_wait(const uint32_t* word, uint32_t expected, const timespec* timeout,
                       bool shared = false) {
  return raw_syscall(SYS_futex, as_long(word), FUTEX_WAIT | (shared ? 0 : FUTEX_PRIVATE_FLAG),
                     expected, as_long(timeout));
}

inline long futex_wake(const uint32_t* word, uint32_t count, bool shared = false) {
  return raw_syscall(SYS_futex, as_long(word), FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG),
                     count);
}

inline long raw_write(int fd, const void* data, size_t size) {
  return raw_syscall(SYS_write, fd, as_long(data), static_cast<long>(size));
}

inline long raw_close(int fd) {
  return raw_syscall(SYS_close, fd);
}
inline uint32_t raw_getpid() {
  return static_cast<uint32_t>(raw_syscall(SYS_getpid));
}
inline uint32_t raw_gettid() {
  return static_cast<uint32_t>(raw_syscall(SYS_gettid));
}
[[noreturn]] inline void raw_exit_group(int status) {
  for (;;) raw_syscall(SYS_exit_group, status);
}

}  // namespace heddle::rt
