// The seed of a random test: HEDDLE_TEST_SEED, or a new one. A test that fails prints it
// (SCOPED_TRACE).
#pragma once

#include <cstdlib>
#include <random>

namespace heddle {

inline unsigned test_seed() {
  const char* const given = std::getenv("HEDDLE_TEST_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

}  // namespace heddle
