#include "runtime/strategy.h"

#include <string.h>

extern "C" {
extern const heddle::rt::Strategy* const __start_heddle_strategies[]
    __attribute__((visibility("hidden")));
extern const heddle::rt::Strategy* const __stop_heddle_strategies[]
    __attribute__((visibility("hidden")));
}

namespace heddle::rt {

Random g_random;
const Strategy* g_strategy;

// splitmix64 (Steele, Lea, Flood 2014): any seed is a good one.
uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The high half of the product is uniform up to 2^-64 · limit, which no program can notice.
uint64_t Random::below(uint64_t limit) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
}

void strategy_select() {
  g_random.seed(rt_option(seed));
  const Strategy* fifo = nullptr;
  g_strategy = nullptr;
  for (auto* at = __start_heddle_strategies; at != __stop_heddle_strategies; ++at) {
    if (strcmp((*at)->name, rt_option(schedule)) == 0) g_strategy = *at;
    if (strcmp((*at)->name, "fifo") == 0) fifo = *at;
  }
  if (g_strategy == nullptr) {
    g_strategy = fifo;
    say("there is no schedule `%s`; known are:", rt_option(schedule));
    for (auto* at = __start_heddle_strategies; at != __stop_heddle_strategies; ++at) {
      say("  %s: %s", (*at)->name, (*at)->help);
    }
  }
  g_strategy->start();
}

void strategy_finish() {
  if (g_strategy != nullptr) g_strategy->finish();
}

}  // namespace heddle::rt
