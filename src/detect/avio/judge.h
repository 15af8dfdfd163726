// Judge: what the learned file says about a site, looked up once per site.
#pragma once

#include "detect/avio/invariants.h"
#include "trace/catalog.h"

#include <cstdint>
#include <vector>

namespace heddle::avio {

class Judge {
 public:
  enum class Verdict : std::uint8_t {
    kUnknown,
    kReport,     // an invariant, or nothing was learned at all
    kDropped,    // passing runs split it
    kNeverSeen,  // no passing run executed it
  };

  Judge(const Catalog& catalog, const Invariants* invariants)
      : catalog_(catalog), invariants_(invariants) {}

  Verdict of(SiteId site) {
    if (invariants_ == nullptr) return Verdict::kReport;
    if (site >= verdicts_.size()) verdicts_.resize(site + std::size_t{1}, Verdict::kUnknown);
    if (verdicts_[site] == Verdict::kUnknown) verdicts_[site] = look_up(site);
    return verdicts_[site];
  }

 private:
  Verdict look_up(SiteId site) const {
    const SiteKey key = catalog_.site(site).key;
    const auto learned = invariants_->sites().find(key);
    if (key == 0 || learned == invariants_->sites().end() || learned->second.executed.empty()) {
      return Verdict::kNeverSeen;
    }
    return invariants_->holds(learned->second) ? Verdict::kReport : Verdict::kDropped;
  }

  const Catalog& catalog_;
  const Invariants* invariants_;
  std::vector<Verdict> verdicts_;  // by site
};

}  // namespace heddle::avio
