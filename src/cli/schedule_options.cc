#include "cli/schedule_options.h"

namespace heddle::cli {

void ScheduleOptions::declare(CLI::App& app, const std::string& default_strategy,
                              const std::string& default_points, unsigned default_timeout,
                              bool seeds) {
  strategy = default_strategy;
  points = default_points;
  timeout = default_timeout;
  CLI::Option* const how =
      app.add_option(
             "--schedule", strategy,
             "who runs next: fifo (switch only when a thread blocks), random, pct, or a schedule "
             "file to follow")
          ->capture_default_str();
  CLI::Option* const where =
      app.add_option(
             "--points", points,
             "accesses before which threads are switched, besides synchronisation and atomics: "
             "sync (none), shared (of memory that several threads touch), all")
          ->capture_default_str();
  if (seeds) {
    CLI::Option* const given =
        app.add_option("--seed", seed,
                       "where random decisions come from; by itself it means --schedule random "
                       "--points shared, as heddle try does it")
            ->capture_default_str();
    app.parse_complete_callback([this, how, where, given] {
      if (given->count() == 0 || how->count() != 0) return;
      strategy = "random";
      if (where->count() == 0) points = "shared";
    });
  }
  app.add_option("--switch-every", switch_every,
                 "random: one switch per this many scheduling points, on average")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--pct-depth", pct_depth, "pct: one more than the number of priority changes")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--pct-length", pct_length,
                 "pct: scheduling points of a run; 0: as many as a first run under fifo has "
                 "(heddle try), else 1000")
      ->capture_default_str();
  app.add_option("--timeout", timeout, "seconds after which a run is a hang; 0: never")
      ->capture_default_str();
  app.add_flag("--real-time", real_time, "sleeps, time limits and clocks are real, not virtual");
}

bool ScheduleOptions::is_file() const {
  return strategy != "fifo" && strategy != "random" && strategy != "pct";
}

std::vector<std::pair<std::string, std::string>> ScheduleOptions::runtime(bool with_seed) const {
  std::vector<std::pair<std::string, std::string>> options;
  if (is_file()) {
    options.emplace_back("schedule", "replay");
    options.emplace_back("schedule_in", strategy);
  } else {
    options.emplace_back("schedule", strategy);
  }
  options.emplace_back("points", points);
  if (with_seed) options.emplace_back("seed", std::to_string(seed));
  options.emplace_back("switch_every", std::to_string(switch_every));
  options.emplace_back("pct_depth", std::to_string(pct_depth));
  if (pct_length != 0) options.emplace_back("pct_length", std::to_string(pct_length));
  if (timeout != 0) options.emplace_back("timeout", std::to_string(timeout));
  if (real_time) options.emplace_back("real_time", "1");
  return options;
}

}  // namespace heddle::cli
