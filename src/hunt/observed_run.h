// One run of a program under control with a detector attached: nothing is written to disk, the
// detector reads the events while the program runs.
#pragma once

#include "abi/status.h"
#include "base/result.h"
#include "detect/detector.h"
#include "trace/catalog.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::collect {
class Decoder;
}

namespace heddle::hunt {

struct ObserveRequest {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> runtime;  // keys and values of HEDDLE_OPTIONS
  unsigned timeout = 0;           // seconds of real time after which the run is a hang; 0: never
  int output_fd = -1;             // where the program's output goes; -1: where ours goes
  std::function<void()> started;  // called when the program runs, before its first event
  // Called like `done`, of the process that was started: what the collector knows of its units.
  std::function<void(const collect::Decoder&)> decoded;
};

struct ObservedEnd {
  RunEnd end = RunEnd::kLost;
  int value = 0;                   // exit status or signal
  std::string text;                // of an assertion or a deadlock
  bool instrumented = false;       // some access was seen
  bool units = false;              // some translation unit of it was built with heddle-cc
  int shell_status = 0;            // what a shell would say of the program
  std::vector<std::string> notes;  // what the collector could not make sense of
  heddle_status status{};          // what the runtime left of the process that was started

  bool passed() const { return end == RunEnd::kExit && value == 0; }
};

// "exit status 1", "signal 11", "hang" …
std::string describe(const ObservedEnd& end);

// `make` is called for every process of the program that connects, `done` after its last event;
// both from one thread at a time. The end is that of the process that was started. When it cannot
// be started, `start_status` is what a shell would return.
Result<ObservedEnd> observe(const ObserveRequest& request,
                            const std::function<std::unique_ptr<Detector>(const Catalog&)>& make,
                            const std::function<void(Detector&, const Catalog&)>& done,
                            int* start_status = nullptr);

}  // namespace heddle::hunt
