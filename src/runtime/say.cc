#include "runtime/say.h"

#include "runtime/raw.h"

#include <string.h>

namespace heddle::rt {
namespace {

// A text under construction that never overruns.
class Text {
 public:
  Text(char* out, size_t size) : out_(out), size_(size) {}

  void put(char c) {
    if (used_ + 1 < size_) out_[used_++] = c;
  }
  void put(const char* text) {
    for (; *text != '\0'; ++text) put(*text);
  }
  void number(unsigned long value, unsigned base) {
    char digits[24];
    int count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
  }
  size_t finish() {
    if (size_ != 0) out_[used_] = '\0';
    return used_;
  }

 private:
  char* out_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace

size_t format_text_v(char* out, size_t size, const char* format, va_list arguments) {
  Text text(out, size);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '%') {
      text.put(*at);
      continue;
    }
    ++at;
    bool is_long = false;
    while (*at == 'l' || *at == 'z') {
      is_long = true;
      ++at;
    }
    switch (*at) {
      case 's': {
        const char* value = va_arg(arguments, const char*);
        text.put(value == nullptr ? "(null)" : value);
        break;
      }
      case 'd': {
        const long value = is_long ? va_arg(arguments, long) : va_arg(arguments, int);
        if (value < 0) text.put('-');
        text.number(
            value < 0 ? 0 - static_cast<unsigned long>(value) : static_cast<unsigned long>(value),
            10);
        break;
      }
      case 'u':
      case 'x': {
        const unsigned long value =
            is_long ? va_arg(arguments, unsigned long) : va_arg(arguments, unsigned);
        text.number(value, *at == 'u' ? 10 : 16);
        break;
      }
      case 'p':
        text.put("0x");
        text.number(reinterpret_cast<unsigned long>(va_arg(arguments, void*)), 16);
        break;
      case '%':
        text.put('%');
        break;
      case '\0':
        return text.finish();
      default:
        text.put(*at);
    }
  }
  return text.finish();
}

size_t format_text(char* out, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_text_v(out, size, format, arguments);
  va_end(arguments);
  return length;
}

void say(const char* format, ...) {
  char line[2048];
  size_t length = format_text(line, sizeof line - 1, "heddle: ");
  va_list arguments;
  va_start(arguments, format);
  length += format_text_v(line + length, sizeof line - 1 - length, format, arguments);
  va_end(arguments);
  line[length++] = '\n';
  raw_write(2, line, length);
}

void broken(const char* file, int line, const char* condition) {
  const char* name = strrchr(file, '/');
  say("internal error in the runtime at %s:%d: %s does not hold; please report this",
      name != nullptr ? name + 1 : file, line, condition);
  raw_exit_group(127);
}

}  // namespace heddle::rt
