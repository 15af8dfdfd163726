// The detector `frontier`: FRD, the frontier race detector of svd-2005, section 6.2, in two passes.
//
//   find    lists the frontier races of the run (frontier_engine.h), for the user to mark each as
//           synchronisation or data (marks.h). It finds nothing by itself.
//   apply   happens-before with the marked accesses as the only synchronisation: accesses to the
//           same word by places that were marked `sync` are ordered as they happened; everything
//           else that conflicts and is not ordered by that, program order, fork and join is a data
//           race. Locks and atomics that nobody marked order nothing.
//   auto    the run's synchronisation is known, so it is what counts, and the result is that of
//           `race`; the frontier races are listed with the marks that follow: sync where both sides
//           are synchronisation or atomic, else data.
//
// What the program's annotations tell not to look at (annotations.h) neither pass looks at: it is
// not listed, and orders nothing even where its place is marked.
//
// The second pass is the race engine behind a translation: a marked access becomes OrderAcquire and
// OrderRelease on pseudo objects of its word (one for changes, one for looks) and, if it is an
// access to memory, an atomic access, because two marked accesses are not a data race.
#pragma once

#include "detect/detector.h"
#include "detect/race/frontier_engine.h"
#include "detect/race/marks.h"
#include "detect/race/race.h"
#include "detect/witness.h"

#include <map>
#include <optional>
#include <vector>

namespace heddle::race {

struct FrontierSettings {
  enum class Pass { kFind, kApply, kAuto };
  Pass pass = Pass::kAuto;
  Marks marks;  // kApply reads them; the others put their pairs here at the end
};

class FrontierDetector final : public Detector {
 public:
  // `settings` outlives the detector; null stands for the automatic pass.
  FrontierDetector(const Catalog& catalog, FrontierSettings* settings);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

 private:
  struct PairKey {
    SiteId first_site{};
    EventKind first_kind{};
    SiteId second_site{};
    EventKind second_kind{};
    Address address{};
    auto operator<=>(const PairKey&) const = default;
  };
  struct Found {
    MarkedPair pair;
    EventOrdinal at{};  // the first instance
  };

  void find(const Event& event, EventOrdinal ordinal);
  void apply(const Event& event, EventOrdinal ordinal);
  void order_by_word(const Event& event, EventOrdinal ordinal, Effect effect);
  bool is_marked(const Event& event);
  MarkedPlace place(SiteId site, EventKind kind) const;

  FrontierSettings automatic_;
  FrontierSettings& settings_;
  Narrator narrator_;
  Annotations annotations_;
  RaceDetector races_;
  FrontierEngine frontier_;
  std::map<PairKey, Found> found_;
  std::map<std::pair<SiteId, EventKind>, bool> marked_;
};

}  // namespace heddle::race
