// The one interface of all detectors: events in, findings out. A detector opens no file and prints
// nothing, so a ten-line trace written by hand tests it.
#pragma once

#include "finding/finding.h"
#include "trace/taker.h"

#include <string>
#include <vector>

namespace heddle {

class Detector : public EventTaker {
 public:
  // After the last event: what was found, in a fixed order.
  virtual std::vector<Finding> finish() = 0;

  // What is to be said about the analysis as a whole, a line each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace heddle
