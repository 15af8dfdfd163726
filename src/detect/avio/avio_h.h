// AVIO-H next to AVIO: what cache lines and displacement cost (Lu et al., sections 4.1 and 4.3).
//
// Every access goes through the model of the hardware (avio/caches.h) and through the exact
// detector's shadow. The findings are the hardware's, each with a note whether exact bytes agree;
// the remarks compare the two: false positives gained, splits missed and why, and which fraction
// of the accesses had to be checked. Verdicts are compared per access that is an I: the hardware
// knows no P and no R.
//
// Every thread has a core of its own, unless fewer cores are asked for: then thread t runs on core
// t modulo their number, and what the threads of one core do counts as local, as on a machine whose
// lines do not know their thread.
#pragma once

#include "detect/avio/avio.h"
#include "detect/avio/caches.h"

#include <cstdint>
#include <string>
#include <vector>

#include <absl/container/flat_hash_set.h>

namespace heddle::avio {

struct HardwareOptions {
  CacheShape l1;
  std::uint32_t cores = 0;                 // 0: one per thread
  const Invariants* invariants = nullptr;  // must outlive the detector
};

// The note of a finding that the exact detector does not share.
inline constexpr const char* kOneLineOnly =
    "Exact bytes disagree: P, R and I share a cache line only.";

class AvioH : public Detector, private TripleSink {
 public:
  AvioH(const Catalog& catalog, const HardwareOptions& options);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override { return reports_.finish(catalog_); }
  std::vector<std::string> remarks() const override;

  struct Counts {
    std::uint64_t accesses = 0, checked = 0;
    std::uint64_t both = 0, only_hardware = 0, only_software = 0;  // accesses that are an I
    std::uint64_t displaced = 0;  // of only_software: the line was no longer there
  };
  const Counts& counts() const { return counts_; }

 private:
  void on_triple(const Triple& triple) override;
  void on_access(const Event& event, EventOrdinal ordinal);

  const Catalog& catalog_;
  const HardwareOptions options_;
  Judge judge_;
  TripleFinder finder_;
  Explainer explainer_;
  Caches caches_;
  Reports reports_;
  bool software_split_ = false;  // by the access being looked at
  Counts counts_;
  absl::flat_hash_set<SiteId> hardware_sites_, software_sites_;
};

}  // namespace heddle::avio
