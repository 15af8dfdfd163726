// The detector `race`: data races by happens-before, as findings. What a race is and how it is
// found is in race_engine.h.
#pragma once

#include "detect/detector.h"
#include "detect/race/annotations.h"
#include "detect/race/pair_findings.h"
#include "detect/race/race_engine.h"
#include "detect/witness.h"
#include "trace/catalog.h"

namespace heddle::race {

class RaceDetector final : public Detector, private RaceSink {
 public:
  // `name` is who reports: `race`, or a detector built on this one.
  explicit RaceDetector(const Catalog& catalog, std::string name = "race")
      : name_(std::move(name)),
        narrator_(catalog),
        annotations_(catalog),
        findings_(narrator_, sync_),
        engine_(*this, narrator_.stacks(), narrator_.locks_held()) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  // For whoever decides about order by itself, piece by piece instead of on(): an access as the
  // engine is to see it, next to what it was; an event that orders; one that orders nothing.
  void on_ordered_elsewhere(const Event& access, const Event& original, EventOrdinal ordinal);
  void only_order(const Event& event, EventOrdinal ordinal) { engine_.on(event, ordinal); }
  void only_narrate(const Event& event, EventOrdinal ordinal);

  // Instances, not findings.
  std::uint64_t races() const { return races_; }
  const RaceEngine& engine() const { return engine_; }

 private:
  void on_race(const Race& race) override;
  Witness witness(const RacingAccess& side, const Race& race) const;

  std::string name_;
  Narrator narrator_;
  Annotations annotations_;
  RecentSync sync_;
  PairFindings findings_;
  RaceEngine engine_;
  const Event* now_ = nullptr;
  std::string first_variable_;  // of the first race of the run
  std::uint64_t races_ = 0;
};

}  // namespace heddle::race
