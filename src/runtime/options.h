// The options of the runtime: parsed once from HEDDLE_OPTIONS, read everywhere.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace heddle::rt {

struct Options {
  static constexpr size_t kTextSize = 1024;
#define RT_TEXT(name, value, help) char name[kTextSize] = value;
#define RT_NUMBER(name, value, help) uint64_t name = value;
#define RT_FLAG(name, value, help) bool name = value;
#include "runtime/options.def"
#undef RT_TEXT
#undef RT_NUMBER
#undef RT_FLAG
};

// Unknown keys and values that do not parse warn, one line each, and are otherwise ignored.
void parse_options(const char* text);

const Options& options();

// rt_option(seed): the value of one option.
#define rt_option(name) (::heddle::rt::options().name)

}  // namespace heddle::rt
