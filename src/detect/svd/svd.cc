#include "detect/svd/svd.h"

#include "finding/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::svd {

SvdDetector::SvdDetector(const Catalog& catalog, const OnlineOptions& options)
    : online_(catalog, options) {}

void SvdDetector::on(std::span<const Event> batch, EventOrdinal first) {
  while (!batch.empty()) {
    const std::size_t count = online_.on(batch, first);
    batch = batch.subspan(count);
    first += count;
    for (const Violation& violation : online_.take_violations()) {
      const Key key{violation.inside.site, violation.remote.site, violation.store.site};
      const auto [at, is_new] = known_.try_emplace(key, findings_.size());
      if (is_new) {
        findings_.push_back(describe(violation));
      } else {
        ++findings_[at->second].count;
      }
    }
  }
}

std::vector<Finding> SvdDetector::finish() {
  // A violation that happens often is more likely the way the program works than the bug.
  for (Finding& finding : findings_) finding.rank = 1.0 / static_cast<double>(finding.count);
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return std::move(findings_);
}

Finding SvdDetector::describe(const Violation& violation) const {
  const Narrator& narrator = online_.narrator();
  Finding out;
  out.kind = FindingKind::kAtomicityViolation;
  out.detectors = {"svd"};
  out.summary = "input overwritten before the unit ended";
  out.variables = {narrator.variable(violation.remote)};
  out.steps = {narrator.step(violation.inside, "P"), narrator.step(violation.remote, "R"),
               narrator.step(violation.store, "I")};
  out.steps[0].note = "input of the unit";
  out.steps[1].note = "overwrites it";
  out.steps[2].note = "stores what was computed from it";
  const std::string& input = out.variables[0].name;
  const std::string target = narrator.variable(violation.store).name;
  out.in_words =
      input == target
          ? fmt::format(
                "`{}` was read, overwritten by another thread, then written from the old value",
                input)
          : fmt::format("`{}` was written from a value of `{}` that another thread had overwritten",
                        target, input);
  out.fingerprint = fingerprint(out);
  return out;
}

}  // namespace heddle::svd
