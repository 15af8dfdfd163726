// Runs a program under many seeds, several processes at once, and counts how the runs end.
#pragma once

#include "base/result.h"
#include "hunt/controlled_run.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::hunt {

struct TryOptions {
  RunRequest request;  // without seed
  std::string strategy = "random";
  std::uint64_t pct_length = 0;  // pct: scheduling points of a run; 0: those of a run under fifo
  std::uint64_t first_seed = 1;
  std::uint64_t runs = 1000;
  unsigned processes = 0;  // 0: one per processor
  bool until_failure = false;
  bool fork_server = true;      // where the program allows it
  unsigned keep = 10;           // failing seeds of which the schedule is kept
  std::string schedule_prefix;  // files are PREFIX.SEED.schedule
};

struct TriedSeed {
  std::uint64_t seed = 0;
  RunReport report;
  std::string schedule;  // the file, when it was kept
  std::string note;      // what is odd about it: it did not end the same way again, say
};

struct TryResult {
  std::array<std::uint64_t, kRunResults> counts{};
  std::array<std::optional<TriedSeed>, kRunResults> first;  // by seed
  std::vector<TriedSeed> failures;                          // ascending by seed
  std::uint64_t runs = 0;
  std::uint64_t different = 0;   // schedules, by their hash
  std::uint64_t seized = 0;      // runs in which the watchdog had to act
  std::uint64_t pct_length = 0;  // as measured; 0: not needed
  double seconds = 0;
};

// `progress` is called now and then, from one thread at a time.
Result<TryResult> try_seeds(const TryOptions& options,
                            const std::function<void(const TryResult&)>& progress);

// One test case per run: what continuous integration reads.
Status write_junit(const TryOptions& options, const TryResult& result, const std::string& path);

}  // namespace heddle::hunt
