// How many instructions a native program executes, for SVD's rates "per million instructions". This
// machine may have no hardware counters (virtual machines often have none), so Valgrind's callgrind
// counts them. Valgrind is optional: without it the tables say that nothing was counted.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::table {

struct Instructions {
  std::uint64_t own = 0;  // in the program's own code: what heddle-c++ would have instrumented
  std::uint64_t all = 0;  // with the C and C++ libraries and the loader
};

// From the text of a callgrind.out file; `program` is the path of the executable.
Result<Instructions> parse_callgrind(std::string_view text, std::string_view program);

// One run of `program` under callgrind; nothing if Valgrind is not installed.
Result<std::optional<Instructions>> count_instructions(const std::string& program);

}  // namespace heddle::table
