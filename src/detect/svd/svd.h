// `--detect svd`: the online algorithm's violations as findings.
//
// Unique by the three sites (the input, who overwrote it, the store that used it); instances are
// counted. Drawn like a triple: P reads an input of the unit, R overwrites it, I stores what was
// computed from it.
#pragma once

#include "detect/detector.h"
#include "detect/svd/online.h"

#include <map>
#include <tuple>
#include <vector>

namespace heddle::svd {

class SvdDetector : public Detector {
 public:
  SvdDetector(const Catalog& catalog, const OnlineOptions& options);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  const Online& online() const { return online_; }

 private:
  using Key = std::tuple<SiteId, SiteId, SiteId>;

  Finding describe(const Violation& violation) const;

  Online online_;
  std::map<Key, std::size_t> known_;
  std::vector<Finding> findings_;  // in order of first occurrence
};

}  // namespace heddle::svd
