// One run of a program under control with a detector attached: nothing is written to disk, the
// detector reads the events while the program runs.
#pragma once

#include "base/result.h"
#include "detect/detector.h"
#include "trace/catalog.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::hunt {

struct ObserveRequest {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> runtime;  // keys and values of HEDDLE_OPTIONS
  unsigned timeout = 0;  // seconds of real time after which the run is a hang; 0: never
  int output_fd = -1;    // where the program's output goes; -1: where ours goes
};

struct ObservedEnd {
  RunEnd end = RunEnd::kLost;
  int value = 0;              // exit status or signal
  std::string text;           // of an assertion or a deadlock
  bool instrumented = false;  // some access was seen

  bool passed() const { return end == RunEnd::kExit && value == 0; }
};

// "exit status 1", "signal 11", "hang" …
std::string describe(const ObservedEnd& end);

// `make` is called for every process of the program that connects, `done` after its last event;
// both from one thread at a time. The end is that of the process that was started.
Result<ObservedEnd> observe(const ObserveRequest& request,
                            const std::function<std::unique_ptr<Detector>(const Catalog&)>& make,
                            const std::function<void(Detector&, const Catalog&)>& done);

}  // namespace heddle::hunt
