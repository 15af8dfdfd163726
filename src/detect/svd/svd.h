// `--detect svd`: the online algorithm's violations as findings.
//
// Unique by the three sites (the input, who overwrote it, the store that used it); instances are
// counted. Drawn like a triple, with the unit around it: P reads an input of the unit, R overwrites
// it, I stores what was computed from it. What else of the unit was overwritten by then stands
// there as further P and R, and the unit's other statements are context.
#pragma once

#include "detect/detector.h"
#include "detect/svd/online.h"

#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace heddle::svd {

class SvdDetector : public Detector {
 public:
  SvdDetector(const Catalog& catalog, const OnlineOptions& options);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  const Online& online() const { return online_; }

 private:
  using Key = std::tuple<SiteId, SiteId, SiteId>;

  void take_violations();
  // The violations of one unit that one store shows.
  void take(std::span<const Violation> violations);
  Finding describe(std::span<const Violation> violations, const Violation& main);
  void draw_unit(Finding& finding, const Violation& main);

  Online online_;
  std::vector<Violation> taken_;
  std::map<Key, std::size_t> known_;
  std::vector<Finding> findings_;  // in order of first occurrence
};

}  // namespace heddle::svd
