// Which detectors, and what they are told: the options that `check` and `run` share.
//
//   DetectionOptions options;  options.declare(app);            the command line
//   Result<Detection> detection = Detection::load(options);     files read, mistakes found
//   detection->make(catalog)                                    detectors for one trace or process
#pragma once

#include "base/result.h"
#include "detect/avio/invariants.h"
#include "detect/race/frontier.h"
#include "detect/registry.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

struct DetectionOptions {
  std::string detect;  // empty: see chosen()
  std::string invariants;
  unsigned granule = 1;
  std::string l1 = "32K,4,64";
  unsigned cores = 0;
  std::string marks;
  bool mark_auto = false;
  svd::OnlineOptions svd;

  void declare(CLI::App& app);

  // What the user named; else what needs no help, and avio once it was taught.
  std::string chosen() const;
};

class Detection {
 public:
  // Reads the files first, so that a wrong name costs neither a run nor an analysis.
  static Result<Detection> load(const DetectionOptions& options);

  // Detectors with settings of their own; what they refer to lives as long as they do.
  class Set {
   public:
    std::vector<std::unique_ptr<Detector>> detectors;
    std::unique_ptr<race::FrontierSettings> frontier;
  };
  Set make(const Catalog& catalog) const;

  const std::string& names() const { return names_; }
  Needs needs() const { return needs_of(names_); }
  // What the runtime has to record for that.
  const char* level() const { return needs() == Needs::kFlow ? "flow" : "accesses"; }

  // After the last event: was what was learned learned from this program? What frontier found is
  // written to the file of marks.
  Status finish(const Set& set, const Catalog& catalog) const;

 private:
  explicit Detection(const DetectionOptions& options)
      : options_(options), names_(options.chosen()) {}
  Status save_marks(const race::FrontierSettings& frontier) const;

  DetectionOptions options_;
  std::string names_;
  DetectorSettings settings_;
  std::shared_ptr<const avio::Invariants> invariants_;  // null: nothing learned
  race::FrontierSettings frontier_;
};

}  // namespace heddle::cli
