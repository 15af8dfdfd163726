// The table of detectors: `--detect NAME`. A new detector is one line in registry.cc.
#pragma once

#include "base/result.h"
#include "detect/avio/caches.h"
#include "detect/detector.h"
#include "detect/svd/options.h"
#include "trace/catalog.h"
#include "trace/source.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::avio {
class Invariants;
}
namespace heddle::race {
struct FrontierSettings;
}

namespace heddle {

// What the user set for detectors; each reads what concerns it. Whatever comes from a file was
// read by the caller: detectors open none.
struct DetectorSettings {
  unsigned granule = 1;                          // avio: bytes that are one location
  const avio::Invariants* invariants = nullptr;  // avio: what was learned; outlives the detectors
  avio::CacheShape l1;                           // avio-h
  unsigned cores = 0;                            // avio-h; 0: one per thread
  race::FrontierSettings* frontier = nullptr;    // frontier: marks in and out; outlives them
  svd::OnlineOptions svd;
};

// How much of a run a detector has to see; each level has the ones before it.
enum class Needs { kSynchronisation, kAccesses, kFlow };

struct DetectorEntry {
  std::string_view name;
  std::string_view summary;  // one line
  std::unique_ptr<Detector> (*make)(const Catalog& catalog, const DetectorSettings& settings);
  Needs needs = Needs::kAccesses;
};

std::span<const DetectorEntry> detectors();

// By a comma-separated list of names. `catalog` must outlive them.
Result<std::vector<std::unique_ptr<Detector>>> make_detectors(std::string_view names,
                                                              const Catalog& catalog,
                                                              const DetectorSettings& settings);

// What all of the names together need.
Needs needs_of(std::string_view names);

// One pass over the trace for all of them; their findings one after the other.
Result<std::vector<Finding>> run_detectors(EventSource& source,
                                           std::span<const std::unique_ptr<Detector>> detectors);

// After the last event: the findings of all, one detector's after the other's.
std::vector<Finding> finish_all(std::span<const std::unique_ptr<Detector>> detectors);
std::vector<std::string> remarks_of(std::span<const std::unique_ptr<Detector>> detectors);

}  // namespace heddle
