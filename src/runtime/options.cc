#include "runtime/options.h"

#include "runtime/say.h"

#include <string.h>

namespace heddle::rt {
namespace {

Options g_options;

bool parse_number(const char* text, uint64_t* value) {
  const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const unsigned base = hexadecimal ? 16 : 10;
  if (hexadecimal) text += 2;
  if (*text == '\0') return false;
  uint64_t result = 0;
  for (; *text != '\0'; ++text) {
    unsigned digit;
    if (*text >= '0' && *text <= '9') {
      digit = static_cast<unsigned>(*text - '0');
    } else if (*text >= 'a' && *text <= 'f') {
      digit = static_cast<unsigned>(*text - 'a') + 10;
    } else if (*text >= 'A' && *text <= 'F') {
      digit = static_cast<unsigned>(*text - 'A') + 10;
    } else {
      return false;
    }
    if (digit >= base || __builtin_mul_overflow(result, base, &result) ||
        __builtin_add_overflow(result, digit, &result)) {
      return false;
    }
  }
  *value = result;
  return true;
}

void set_text(char (&field)[Options::kTextSize], const char* value) {
  strncpy(field, value, Options::kTextSize - 1);
  field[Options::kTextSize - 1] = '\0';
}

void bad_value(const char* key, const char* value, const char* wanted) {
  say("HEDDLE_OPTIONS: %s=%s is not %s; ignored", key, value, wanted);
}

void set_option(const char* key, const char* value) {
  uint64_t number = 0;
#define RT_TEXT(name, initial, help) \
  if (strcmp(key, #name) == 0) {     \
    set_text(g_options.name, value); \
    return;                          \
  }
#define RT_NUMBER(name, initial, help)   \
  if (strcmp(key, #name) == 0) {         \
    if (parse_number(value, &number)) {  \
      g_options.name = number;           \
    } else {                             \
      bad_value(key, value, "a number"); \
    }                                    \
    return;                              \
  }
#define RT_FLAG(name, initial, help)                   \
  if (strcmp(key, #name) == 0) {                       \
    if (parse_number(value, &number) && number <= 1) { \
      g_options.name = number != 0;                    \
    } else {                                           \
      bad_value(key, value, "0 or 1");                 \
    }                                                  \
    return;                                            \
  }
#include "runtime/options.def"
#undef RT_TEXT
#undef RT_NUMBER
#undef RT_FLAG
  say("HEDDLE_OPTIONS: there is no option `%s` (HEDDLE_OPTIONS=help=1 lists them); ignored", key);
}

void print_help() {
  say("HEDDLE_OPTIONS is key=value:key=value with the keys");
#define RT_TEXT(name, initial, help) \
  say("  %s=TEXT    %s (default \"%s\")", #name, help, static_cast<const char*>(initial));
#define RT_NUMBER(name, initial, help) \
  say("  %s=NUMBER  %s (default %lu)", #name, help, static_cast<unsigned long>(initial));
#define RT_FLAG(name, initial, help) \
  say("  %s=0|1     %s (default %d)", #name, help, static_cast<int>(initial));
#include "runtime/options.def"
#undef RT_TEXT
#undef RT_NUMBER
#undef RT_FLAG
}

}  // namespace

const Options& options() {
  return g_options;
}

void parse_options(const char* text) {
  while (*text != '\0') {
    char item[Options::kTextSize + 64];
    size_t length = 0;
    for (; *text != '\0' && *text != ':'; ++text) {
      if (text[0] == '\\' && (text[1] == ':' || text[1] == '\\')) ++text;
      if (length + 1 < sizeof item) item[length++] = *text;
    }
    item[length] = '\0';
    if (*text == ':') ++text;
    if (length == 0) continue;
    char* equals = strchr(item, '=');
    if (equals == nullptr) {
      say("HEDDLE_OPTIONS: `%s` has no value (write key=value); ignored", item);
      continue;
    }
    *equals = '\0';
    set_option(item, equals + 1);
  }
  if (g_options.help) print_help();
}

}  // namespace heddle::rt
