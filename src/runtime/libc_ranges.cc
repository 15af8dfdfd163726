// The wrappers that instrumented code calls instead of the C library's mem* and str* functions
// (abi/libc_ranges.h has the list): the same result, and the bytes that were read and written as
// ranges. They are recorded when the call is done, by the thread that has held the baton all the
// time, so nothing can have come between. A search reads as far as it has to look by definition,
// not as far as the library's vector code really looks.
#include "runtime/real.h"
#include "runtime/record.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

// Fortified variants have no declaration of their own.
extern "C" {
void* __memcpy_chk(void*, const void*, size_t, size_t);
void* __memmove_chk(void*, const void*, size_t, size_t);
void* __mempcpy_chk(void*, const void*, size_t, size_t);
void* __memset_chk(void*, int, size_t, size_t);
char* __stpcpy_chk(char*, const char*, size_t);
char* __stpncpy_chk(char*, const char*, size_t, size_t);
char* __strcat_chk(char*, const char*, size_t);
char* __strcpy_chk(char*, const char*, size_t);
char* __strncat_chk(char*, const char*, size_t, size_t);
char* __strncpy_chk(char*, const char*, size_t, size_t);
}

namespace heddle::rt {
namespace {

constexpr size_t kLargest = 0x40000000;

// Ranges of one call. Everything is measured before the call changes it and recorded after.
class Ranges {
 public:
  explicit Ranges(const void* pc) : pc_(pc), on_(!passive()) {}
  bool on() const { return on_; }
  void read(const void* at, size_t size) { add(EventKind::kRead, at, size); }
  void write(const void* at, size_t size) { add(EventKind::kWrite, at, size); }

 private:
  void add(EventKind kind, const void* at, size_t size) {
    if (!on_) return;
    uint64_t address = reinterpret_cast<uint64_t>(at);
    while (size != 0) {
      const size_t part = size < kLargest ? size : kLargest;
      rec_event(kind, LockMode::kExclusive, OpOutcome::kOk, static_cast<uint32_t>(part), address, 0,
                pc_);
      address += part;
      size -= part;
    }
  }

  const void* pc_;
  bool on_;
};

#define RANGES Ranges ranges(__builtin_return_address(0))
#define WRAPPER RT_EXPORT

size_t bounded(const char* text, size_t limit) {
  const size_t length = strnlen(text, limit);
  return length < limit ? length + 1 : limit;  // with the zero, if there is one
}

int lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

// How many bytes two texts have to be compared for.
size_t compared(const char* a, const char* b, size_t limit, bool fold) {
  for (size_t i = 0; i < limit; ++i) {
    const auto x = static_cast<unsigned char>(a[i]);
    const auto y = static_cast<unsigned char>(b[i]);
    if (x == 0 || y == 0 || (fold ? lower(x) != lower(y) : x != y)) return i + 1;
  }
  return limit;
}

size_t compared_bytes(const void* a, const void* b, size_t limit) {
  const auto* x = static_cast<const char*>(a);
  const auto* y = static_cast<const char*>(b);
  for (size_t i = 0; i < limit; ++i) {
    if (x[i] != y[i]) return i + 1;
  }
  return limit;
}

// From `start` up to and including what was found, or all of `whole` when nothing was.
size_t searched(const void* start, const void* found, size_t whole) {
  if (found == nullptr) return whole;
  return static_cast<size_t>(static_cast<const char*>(found) - static_cast<const char*>(start)) + 1;
}

char* token(char* text, const char* separators, char** rest, Ranges& ranges) {
  char* start = text != nullptr ? text : *rest;
  if (start == nullptr) return strtok_r(text, separators, rest);
  const size_t whole = strlen(start) + 1;
  char* found = strtok_r(text, separators, rest);
  ranges.read(separators, strlen(separators) + 1);
  const char* end = *rest != nullptr ? *rest : start + whole;
  ranges.read(start,
              static_cast<size_t>(end - start) < whole ? static_cast<size_t>(end - start) : whole);
  if (found != nullptr && end > start && end < start + whole) ranges.write(end - 1, 1);
  return found;
}

}  // namespace

// ---- bytes ----------------------------------------------------------------------------------

WRAPPER void* __heddle_memcpy(void* to, const void* from, size_t size) {
  RANGES;
  void* result = memcpy(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void* __heddle_memmove(void* to, const void* from, size_t size) {
  RANGES;
  void* result = memmove(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void* __heddle_mempcpy(void* to, const void* from, size_t size) {
  RANGES;
  void* result = mempcpy(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void __heddle_bcopy(const void* from, void* to, size_t size) {
  RANGES;
  memmove(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
}

WRAPPER void* __heddle_memset(void* to, int value, size_t size) {
  RANGES;
  void* result = memset(to, value, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void __heddle_bzero(void* to, size_t size) {
  RANGES;
  memset(to, 0, size);
  ranges.write(to, size);
}

WRAPPER void __heddle_explicit_bzero(void* to, size_t size) {
  RANGES;
  explicit_bzero(to, size);
  ranges.write(to, size);
}

WRAPPER int __heddle_memcmp(const void* a, const void* b, size_t size) {
  RANGES;
  const size_t seen = ranges.on() ? compared_bytes(a, b, size) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return memcmp(a, b, size);
}

WRAPPER int __heddle_bcmp(const void* a, const void* b, size_t size) {
  RANGES;
  const size_t seen = ranges.on() ? compared_bytes(a, b, size) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return bcmp(a, b, size);
}

WRAPPER void* __heddle_memchr(const void* in, int value, size_t size) {
  RANGES;
  auto* found = const_cast<void*>(memchr(in, value, size));
  ranges.read(in, searched(in, found, size));
  return found;
}

WRAPPER void* __heddle_rawmemchr(const void* in, int value) {
  RANGES;
  auto* found = const_cast<void*>(rawmemchr(in, value));
  ranges.read(in, searched(in, found, 0));
  return found;
}

WRAPPER void* __heddle_memrchr(const void* in, int value, size_t size) {
  RANGES;
  auto* found = const_cast<void*>(memrchr(in, value, size));
  const char* from =
      found != nullptr ? static_cast<const char*>(found) : static_cast<const char*>(in);
  ranges.read(from, size - static_cast<size_t>(from - static_cast<const char*>(in)));
  return found;
}

WRAPPER void* __heddle_memmem(const void* in, size_t size, const void* what, size_t length) {
  RANGES;
  void* found = memmem(in, size, what, length);
  ranges.read(what, length);
  ranges.read(in, found == nullptr ? size : searched(in, found, size) - 1 + length);
  return found;
}

WRAPPER void* __heddle_memccpy(void* to, const void* from, int stop, size_t size) {
  RANGES;
  void* result = memccpy(to, from, stop, size);
  const size_t copied = result == nullptr ? size : searched(to, result, size) - 1;
  ranges.read(from, copied);
  ranges.write(to, copied);
  return result;
}

// ---- texts ----------------------------------------------------------------------------------

WRAPPER size_t __heddle_strlen(const char* text) {
  RANGES;
  const size_t length = strlen(text);
  ranges.read(text, length + 1);
  return length;
}

WRAPPER size_t __heddle_strnlen(const char* text, size_t limit) {
  RANGES;
  const size_t length = strnlen(text, limit);
  ranges.read(text, length < limit ? length + 1 : limit);
  return length;
}

WRAPPER char* __heddle_strcpy(char* to, const char* from) {
  RANGES;
  const size_t size = strlen(from) + 1;
  memcpy(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
  return to;
}

WRAPPER char* __heddle_stpcpy(char* to, const char* from) {
  RANGES;
  const size_t size = strlen(from) + 1;
  memcpy(to, from, size);
  ranges.read(from, size);
  ranges.write(to, size);
  return to + size - 1;
}

WRAPPER char* __heddle_strncpy(char* to, const char* from, size_t size) {
  RANGES;
  const size_t seen = bounded(from, size);
  strncpy(to, from, size);
  ranges.read(from, seen);
  ranges.write(to, size);
  return to;
}

WRAPPER char* __heddle_stpncpy(char* to, const char* from, size_t size) {
  RANGES;
  const size_t seen = bounded(from, size);
  char* result = stpncpy(to, from, size);
  ranges.read(from, seen);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle_strcat(char* to, const char* from) {
  RANGES;
  const size_t before = strlen(to);
  const size_t size = strlen(from) + 1;
  memcpy(to + before, from, size);
  ranges.read(to, before + 1);
  ranges.read(from, size);
  ranges.write(to + before, size);
  return to;
}

WRAPPER char* __heddle_strncat(char* to, const char* from, size_t limit) {
  RANGES;
  const size_t before = strlen(to);
  const size_t length = strnlen(from, limit);
  const size_t seen = bounded(from, limit);
  strncat(to, from, limit);
  ranges.read(to, before + 1);
  ranges.read(from, seen);
  ranges.write(to + before, length + 1);
  return to;
}

WRAPPER int __heddle_strcmp(const char* a, const char* b) {
  RANGES;
  const size_t seen = ranges.on() ? compared(a, b, SIZE_MAX, false) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return strcmp(a, b);
}

WRAPPER int __heddle_strncmp(const char* a, const char* b, size_t limit) {
  RANGES;
  const size_t seen = ranges.on() ? compared(a, b, limit, false) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return strncmp(a, b, limit);
}

WRAPPER int __heddle_strcasecmp(const char* a, const char* b) {
  RANGES;
  const size_t seen = ranges.on() ? compared(a, b, SIZE_MAX, true) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return strcasecmp(a, b);
}

WRAPPER int __heddle_strncasecmp(const char* a, const char* b, size_t limit) {
  RANGES;
  const size_t seen = ranges.on() ? compared(a, b, limit, true) : 0;
  ranges.read(a, seen);
  ranges.read(b, seen);
  return strncasecmp(a, b, limit);
}

WRAPPER int __heddle_strcoll(const char* a, const char* b) {
  RANGES;
  ranges.read(a, strlen(a) + 1);
  ranges.read(b, strlen(b) + 1);
  return strcoll(a, b);
}

WRAPPER char* __heddle_strchr(const char* text, int value) {
  RANGES;
  auto* found = const_cast<char*>(strchr(text, value));
  ranges.read(text, searched(text, found, found == nullptr ? strlen(text) + 1 : 0));
  return found;
}

WRAPPER char* __heddle_strchrnul(const char* text, int value) {
  RANGES;
  auto* found = const_cast<char*>(strchrnul(text, value));
  ranges.read(text, searched(text, found, 0));
  return found;
}

WRAPPER char* __heddle_strrchr(const char* text, int value) {
  RANGES;
  ranges.read(text, strlen(text) + 1);
  return const_cast<char*>(strrchr(text, value));
}

WRAPPER char* __heddle_strstr(const char* text, const char* what) {
  RANGES;
  auto* found = const_cast<char*>(strstr(text, what));
  const size_t length = strlen(what);
  ranges.read(what, length + 1);
  ranges.read(text, found == nullptr ? strlen(text) + 1 : searched(text, found, 0) - 1 + length);
  return found;
}

WRAPPER char* __heddle_strcasestr(const char* text, const char* what) {
  RANGES;
  auto* found = const_cast<char*>(strcasestr(text, what));
  const size_t length = strlen(what);
  ranges.read(what, length + 1);
  ranges.read(text, found == nullptr ? strlen(text) + 1 : searched(text, found, 0) - 1 + length);
  return found;
}

WRAPPER size_t __heddle_strspn(const char* text, const char* accept) {
  RANGES;
  const size_t length = strspn(text, accept);
  ranges.read(accept, strlen(accept) + 1);
  ranges.read(text, length + 1);
  return length;
}

WRAPPER size_t __heddle_strcspn(const char* text, const char* reject) {
  RANGES;
  const size_t length = strcspn(text, reject);
  ranges.read(reject, strlen(reject) + 1);
  ranges.read(text, length + 1);
  return length;
}

WRAPPER char* __heddle_strpbrk(const char* text, const char* accept) {
  RANGES;
  const size_t length = strcspn(text, accept);
  ranges.read(accept, strlen(accept) + 1);
  ranges.read(text, length + 1);
  return text[length] != 0 ? const_cast<char*>(text) + length : nullptr;
}

WRAPPER char* __heddle_strdup(const char* text) {
  RANGES;
  char* copy = strdup(text);
  const size_t size = strlen(text) + 1;
  ranges.read(text, size);
  if (copy != nullptr) ranges.write(copy, size);
  return copy;
}

WRAPPER char* __heddle_strndup(const char* text, size_t limit) {
  RANGES;
  char* copy = strndup(text, limit);
  ranges.read(text, bounded(text, limit));
  if (copy != nullptr) ranges.write(copy, strlen(copy) + 1);
  return copy;
}

WRAPPER char* __heddle_strtok_r(char* text, const char* separators, char** rest) {
  RANGES;
  return token(text, separators, rest, ranges);
}

WRAPPER char* __heddle_strtok(char* text, const char* separators) {
  RANGES;
  static char* rest;
  ranges.read(&rest, sizeof rest);
  char* found = token(text, separators, &rest, ranges);
  ranges.write(&rest, sizeof rest);
  return found;
}

WRAPPER char* __heddle_strsep(char** text, const char* separators) {
  RANGES;
  char* start = *text;
  const size_t length = start == nullptr ? 0 : strcspn(start, separators);
  const bool cut = start != nullptr && start[length] != 0;
  ranges.read(text, sizeof *text);
  char* found = strsep(text, separators);
  if (start != nullptr) {
    ranges.read(separators, strlen(separators) + 1);
    ranges.read(start, length + 1);
    if (cut) ranges.write(start + length, 1);
    ranges.write(text, sizeof *text);
  }
  return found;
}

// ---- fortified --------------------------------------------------------------------------------

WRAPPER void* __heddle___memcpy_chk(void* to, const void* from, size_t size, size_t room) {
  RANGES;
  void* result = __memcpy_chk(to, from, size, room);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void* __heddle___memmove_chk(void* to, const void* from, size_t size, size_t room) {
  RANGES;
  void* result = __memmove_chk(to, from, size, room);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void* __heddle___mempcpy_chk(void* to, const void* from, size_t size, size_t room) {
  RANGES;
  void* result = __mempcpy_chk(to, from, size, room);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER void* __heddle___memset_chk(void* to, int value, size_t size, size_t room) {
  RANGES;
  void* result = __memset_chk(to, value, size, room);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle___strcpy_chk(char* to, const char* from, size_t room) {
  RANGES;
  const size_t size = strlen(from) + 1;
  char* result = __strcpy_chk(to, from, room);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle___stpcpy_chk(char* to, const char* from, size_t room) {
  RANGES;
  const size_t size = strlen(from) + 1;
  char* result = __stpcpy_chk(to, from, room);
  ranges.read(from, size);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle___strncpy_chk(char* to, const char* from, size_t size, size_t room) {
  RANGES;
  const size_t seen = bounded(from, size);
  char* result = __strncpy_chk(to, from, size, room);
  ranges.read(from, seen);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle___stpncpy_chk(char* to, const char* from, size_t size, size_t room) {
  RANGES;
  const size_t seen = bounded(from, size);
  char* result = __stpncpy_chk(to, from, size, room);
  ranges.read(from, seen);
  ranges.write(to, size);
  return result;
}

WRAPPER char* __heddle___strcat_chk(char* to, const char* from, size_t room) {
  RANGES;
  const size_t before = strlen(to);
  const size_t size = strlen(from) + 1;
  char* result = __strcat_chk(to, from, room);
  ranges.read(to, before + 1);
  ranges.read(from, size);
  ranges.write(to + before, size);
  return result;
}

WRAPPER char* __heddle___strncat_chk(char* to, const char* from, size_t limit, size_t room) {
  RANGES;
  const size_t before = strlen(to);
  const size_t length = strnlen(from, limit);
  const size_t seen = bounded(from, limit);
  char* result = __strncat_chk(to, from, limit, room);
  ranges.read(to, before + 1);
  ranges.read(from, seen);
  ranges.write(to + before, length + 1);
  return result;
}

}  // namespace heddle::rt
