#include "cli/messages.h"

#include "cli/exit_status.h"

#include <cstdio>

#include <fmt/format.h>

namespace heddle::cli {

int fail(const Error& error) {
  fmt::print(stderr, "heddle: {}\n", error.message);
  return kUsage;
}

void warn(const std::string& message) {
  fmt::print(stderr, "heddle: warning: {}\n", message);
}

void tell(const std::string& message) {
  fmt::print(stderr, "heddle: {}\n", message);
}

}  // namespace heddle::cli
