// Messages of the runtime to the user: one line on stderr, prefixed "heddle: ", in one write.
#pragma once

#include <stdarg.h>
#include <stddef.h>

namespace heddle::rt {

// Formats %s, %d, %u, %x and %p, with the length modifiers l and z; no allocation, no locale.
// Returns the length, which never exceeds size - 1.
size_t format_text(char* out, size_t size, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
size_t format_text_v(char* out, size_t size, const char* format, va_list arguments);

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// An invariant of the runtime does not hold: says so and ends the process.
[[noreturn]] void broken(const char* file, int line, const char* condition);

}  // namespace heddle::rt

#define RT_CHECK(condition)                            \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::heddle::rt::broken(__FILE__, __LINE__, #condition))
