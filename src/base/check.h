// HEDDLE_CHECK: an invariant of ours. On in every build; a user's mistake is never a check, it is
// an Error (base/result.h).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace heddle::detail {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "heddle: internal error at %s:%d: %s does not hold; please report this\n",
               file, line, condition);
  std::abort();
}

}  // namespace heddle::detail

#define HEDDLE_CHECK(condition)                        \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::heddle::detail::check_failed(__FILE__, __LINE__, #condition))
