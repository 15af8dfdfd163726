// From findings to what the user reads and to the exit status: suppressions, baseline, terminal or
// JSON. The options are shared by `check` and `run`.
#pragma once

#include "base/result.h"
#include "cli/output.h"
#include "finding/baseline.h"
#include "finding/finding.h"
#include "finding/suppressions.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

struct FindingReportOptions {
  std::vector<std::string> suppressions;
  std::string baseline;
  std::string write_baseline;
  std::string fail_on = "new";  // new, any, none
  std::vector<std::string> sources;
  bool json = false;

  void declare(CLI::App& app, const std::string& default_fail_on,
               const std::string& fail_on_description);
};

class FindingReport {
 public:
  // Reads the files first, so that a wrong name costs no analysis.
  static Result<FindingReport> load(const FindingReportOptions& options);

  struct Analysis {
    std::vector<Finding> findings;
    std::vector<std::string> remarks;  // of detectors, about the whole
    std::string detectors;             // their names
    std::map<std::string, std::string> about;
    bool recorded = true;  // false: there was nothing to look at, and nobody says "nothing found"
  };

  // Leaves out what is suppressed or known, writes the rest to `output`, whose descriptor decides
  // about colour and width. True: there is something for which the exit status is to be 1.
  Result<bool> write(Analysis analysis, Output output);

  // The exit status is asked to say whether there is something.
  bool decides_status() const { return options_.fail_on != "none"; }

 private:
  explicit FindingReport(const FindingReportOptions& options) : options_(options) {}

  FindingReportOptions options_;
  Suppressions suppressions_;
  Baseline baseline_;
};

}  // namespace heddle::cli
