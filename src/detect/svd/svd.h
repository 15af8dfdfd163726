// `--detect svd`: the online algorithm's violations as findings.
//
// Unique by the input and who overwrote it; instances are counted. The store is only where the unit
// was seen to go on with the old value: of the stores at which that happened, the one is drawn that
// tells most (an update of the input itself, else one that came soon after the input was read), and
// the others are named. Drawn like a triple, with the unit around it: P reads an input of the unit,
// R overwrites it, I stores. What else of the unit was overwritten by then stands there as further
// P and R, and the unit's other statements are context.
#pragma once

#include "detect/detector.h"
#include "detect/svd/online.h"

#include <map>
#include <set>
#include <span>
#include <utility>
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
  using Key = std::pair<SiteId, SiteId>;  // the input and who overwrote it
  struct Known {
    EventOrdinal way{};  // from the P to the I that are drawn; none where the I updates the input
    std::set<SiteId> stores;
    Finding finding;
  };

  void take_violations();
  // The violations of one unit that one store shows.
  void take(std::span<const Violation> violations);
  Finding describe(std::span<const Violation> violations, const Violation& main);
  void draw_unit(Finding& finding, const Violation& main);
  void name_other_stores(Known& known) const;

  Online online_;
  std::vector<Violation> taken_;
  std::map<Key, std::size_t> numbers_;
  std::vector<Known> known_;  // in order of first occurrence
};

}  // namespace heddle::svd
