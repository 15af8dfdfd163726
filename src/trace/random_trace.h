// Random catalogs and events for tests. Everything follows from the seed, which a failing test
// prints.
#pragma once

#include "trace/memory.h"

#include <cstdint>
#include <random>
#include <string>

namespace heddle::testing {

class RandomTrace {
 public:
  explicit RandomTrace(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  // A number of any magnitude: small ones are as likely as 64-bit ones.
  std::uint64_t any() { return random_() >> below(64); }
  std::uint32_t any32() { return static_cast<std::uint32_t>(random_() >> (32 + below(32))); }

  // Adds up to `most` entries to each table.
  void grow(Catalog& catalog, std::size_t most);

  // `count` events of several threads that refer to `catalog`: accesses with strides, segments with
  // their accesses that other threads interrupt, and every other kind with any content.
  std::vector<Event> events(const Catalog& catalog, std::size_t count, ThreadId threads);

  Event any_event(const Catalog& catalog, ThreadId thread);

 private:
  template <typename Table>
  std::uint32_t id_of(const Table& table) {
    return static_cast<std::uint32_t>(below(table.size()));
  }
  Sources sources();

  std::mt19937_64 random_;
};

bool same_catalog(const Catalog& a, const Catalog& b);

}  // namespace heddle::testing
