// The options by which the verbs that run programs say who runs when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace heddle::cli {

// Where heddle record leaves the schedule of a run: bank.schedule for bank.heddle.
inline std::string schedule_of(std::string trace) {
  if (trace.ends_with(".heddle")) trace.resize(trace.size() - std::string_view(".heddle").size());
  return trace + ".schedule";
}

struct ScheduleOptions {
  std::string strategy;  // fifo, random, pct, or the name of a schedule file
  std::string points;    // accesses that are scheduling points
  std::uint64_t seed = 1;
  std::uint64_t switch_every = 8;
  std::uint64_t pct_depth = 3;
  std::uint64_t pct_length = 0;  // 0: that of an earlier run, where there is one
  unsigned timeout = 0;
  bool real_time = false;

  // Puts them on the verb; `strategy` and `timeout` have the defaults given here. `seeds`: the verb
  // has a seed of its own.
  void declare(CLI::App& app, const std::string& default_strategy,
               const std::string& default_points, unsigned default_timeout, bool seeds = true);

  // For HEDDLE_OPTIONS, without what the verb sets itself (seed, timeout when asked so).
  std::vector<std::pair<std::string, std::string>> runtime(bool with_seed = true) const;

  bool is_file() const;
};

}  // namespace heddle::cli
