// Where in a run a finding happens, so that a debugger can stop there.
#pragma once

#include "base/result.h"
#include "cli/detection.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::cli {

struct FindingSearch {
  DetectionOptions detection;
  std::string wanted;  // its number in the report, or the beginning of its fingerprint
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> runtime;  // the schedule, for HEDDLE_OPTIONS
  unsigned timeout = 0;
};

struct FindingPlace {
  std::string what;     // "data race on `stock`: thread 2 before shop.cc:15"
  bool at_end = false;  // a deadlock, hang or crash: where the run ends
  // Otherwise before an access: for HEDDLE_OPTIONS, and the content of its file of sites.
  std::string stop_access;
  std::string stop_sites;
};

// Runs the program twice under the schedule: once with the detectors, once to see how often the
// finding's thread was at its last access before.
Result<FindingPlace> find_finding(const FindingSearch& search);

}  // namespace heddle::cli
