// Small random runs for tests, and what happens before what in them by the definition: direct edges
// rule by rule, closed transitively. Everything follows from the seed, which a failing test prints.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::testing {

struct RunShape {
  std::size_t events = 30;      // at most 64
  std::uint32_t threads = 4;    // at most
  std::uint32_t variables = 3;  // plain variables
  bool overlapping = false;     // accesses of many sizes and offsets to the first two words
  bool locks = true;
  bool fork_join = true;
  bool atomics = false;      // with all orders, and fences
  bool other_sync = false;   // conditions, semaphores, barriers, once, announced order
  bool units = false;        // nested and unfinished
  std::uint32_t plain = 60;  // of 100 events, accesses to plain variables
};

inline constexpr Address kVariables = 0x1000;  // 8 bytes apart
inline constexpr Address kAtomics = 0x2000;    // likewise
inline constexpr Address kLocks = 0x3000;      // 64 bytes apart

std::vector<Event> random_run(std::uint64_t seed, const RunShape& shape);

// One event per line, for messages of failing tests.
std::string to_string(const std::vector<Event>& events);

// A set of events of a run of at most 64.
using EventMask = std::uint64_t;

// Does event i come directly before event j by one of the rules of order/happens_before.h? i < j.
bool directly_before(const std::vector<Event>& events, std::size_t i, std::size_t j);

// before[j] = all i that happen before j.
std::vector<EventMask> happens_before_by_definition(const std::vector<Event>& events);

}  // namespace heddle::testing
