// The detector `outcome`: a run that did not end by itself is a finding, too.
//
//   deadlock   every thread waits for another: where each waits, for what, and who holds that since
//              when
//   hang       the run did not end within its time limit: where each thread was
//   crash      a signal or a failed assertion: the message, the place and the stack
//
// The runtime knows all that at the end of the run and says it in the Outcome event, whose text is
// taken apart here (outcome_text.h); names of locks and the places where they were taken come from
// the events before. An exit status, whatever it is, is no finding.
#pragma once

#include "detect/detector.h"
#include "detect/outcome/outcome_text.h"
#include "detect/witness.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle::outcome {

class OutcomeDetector final : public Detector {
 public:
  explicit OutcomeDetector(const Catalog& catalog) : catalog_(catalog), narrator_(catalog) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

 private:
  Finding stuck(FindingKind kind, const OutcomeText& text) const;
  Finding crash(const Event& outcome, const OutcomeText& text) const;
  Step step_of(const ThreadAtEnd& thread, std::string role) const;
  std::string sentence(const ThreadAtEnd& thread) const;

  const Catalog& catalog_;
  Narrator narrator_;
  std::optional<Event> outcome_;
  EventOrdinal ordinal_ = kNoEvent;
};

}  // namespace heddle::outcome
