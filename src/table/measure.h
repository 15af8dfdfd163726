// What is measured of one program, and the budgets. Everything is a function of the budgets: the
// seeds of training, of judged runs and of hunts are disjoint and fixed.
#pragma once

#include "base/result.h"
#include "table/instructions.h"
#include "table/panel.h"
#include "table/programs.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heddle::table {

struct Budget {
  unsigned training = 100;  // passing runs
  unsigned training_limit = 1000;
  unsigned judged = 20;  // runs that all detectors look at; failing ones, if there are any
  unsigned hunts = 20;   // from different first seeds, for the number of schedules to a failure
  unsigned hunt_limit = 1000;
  unsigned native = 1000;
};

inline constexpr std::uint64_t kTrainingSeed = 1;
inline constexpr std::uint64_t kJudgedSeed = 100'001;
inline constexpr std::uint64_t kHuntSeed = 1'000'001;

// Every access is a scheduling point. The papers' tests are so short that `shared`, which has to
// see a second thread at an address first, is too late for some.
inline constexpr const char* kPoints = "all";

inline constexpr unsigned kCurve[] = {1, 2, 3, 5, 10, 20, 50, 100};  // training runs

// One detector on the judged runs of one program.
struct Judged {
  unsigned found = 0;                               // runs with a finding that is the bug
  std::set<std::string> the_bug;                    // static findings that are the bug, by identity
  std::map<std::string, std::string> false_alarms;  // those that are not, and what they are about
  unsigned one_line_only = 0;  // of those, with which exact bytes disagree (avio-h)
  std::uint64_t dynamic_false = 0;
  std::uint64_t dynamic_true = 0;
};

struct SvdFacts {
  std::uint64_t accesses = 0, segments = 0;  // of all judged runs
  std::uint64_t units = 0;
  std::uint64_t log_entries = 0;
  std::set<std::string> log_groups;  // static ones
  bool log_names_bug = false;        // an entry whose lines are marked
};

struct Hunt {
  std::vector<unsigned> schedules;  // per hunt, ascending; hunts that gave up are not in it
  unsigned gave_up = 0;
};

struct Measured {
  std::string name;
  unsigned trained = 0;  // training runs that passed
  unsigned judged = 0;   // runs
  bool judged_fail = false;
  std::map<std::string, Judged> detectors;
  SvdFacts svd;
  std::vector<unsigned> curve;  // of a program without a bug: static false alarms, as kCurve
  Hunt random, pct;
  std::optional<unsigned> native_failed;
  std::optional<Instructions> native;  // of one native run
  double seconds = 0;
};

struct Place {
  std::string examples;  // the sources and expected.json
  std::string programs;  // built with heddle-c++: NAME
  std::string native;    // built without: ex_NAME

  std::string native_program(const std::string& name) const { return native + "/ex_" + name; }
};

// Runs from kTrainingSeed on; those that pass teach. What was learned after each number of passing
// runs in `stops` (ascending), or after `limit` runs.
struct Taught {
  std::vector<avio::Invariants> after;
  unsigned passed = 0;
};
Result<Taught> train(const Place& place, const Program& program, const std::vector<unsigned>& stops,
                     unsigned limit);

// One run under the eyes of all detectors, added to `out`.
Status judge_run(const Place& place, const Program& program, const avio::Invariants& learned,
                 std::uint64_t seed, Measured* out);

// Seeds from `first` on that make the program fail, at most `count` of them, of `limit` tried.
Result<std::vector<std::uint64_t>> failing_seeds(const Place& place, const Program& program,
                                                 std::uint64_t first, unsigned count,
                                                 unsigned limit);

// Everything but how often native runs fail.
Result<Measured> measure(const Place& place, const Program& program, const Budget& budget);

// How many of `runs` native runs fail. No other measurement should be under way.
Result<unsigned> native_failures(const Place& place, const Program& program, unsigned runs);

}  // namespace heddle::table
