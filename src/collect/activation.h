// A function that a thread is in.
#pragma once

#include "trace/event.h"

#include <cstdint>

namespace heddle::collect {

struct Activation {
  FunctionId function{};
  std::uint64_t frame{};  // token of a function that catches jumps, else 0
};

}  // namespace heddle::collect
