#include "finding/merge.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {
namespace {

using Spot = std::tuple<std::string_view, std::uint32_t, std::uint32_t, std::string_view>;

Spot spot(const Step& step) {
  return {step.place.file, step.place.line, step.place.column, step.place.function};
}

// The marked places, sorted, each once.
std::vector<Spot> spots(const Finding& finding) {
  std::vector<Spot> out;
  for (const Step& step : finding.steps) {
    if (!step.role.empty()) out.push_back(spot(step));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::size_t marked_steps(const Finding& finding) {
  return static_cast<std::size_t>(std::count_if(finding.steps.begin(), finding.steps.end(),
                                                [](const Step& s) { return !s.role.empty(); }));
}

bool overlap(const VariableName& a, const VariableName& b) {
  return a.address < b.address + std::max(b.size, 1u) &&
         b.address < a.address + std::max(a.size, 1u);
}

bool same_memory(const Finding& a, const Finding& b) {
  return std::any_of(a.variables.begin(), a.variables.end(), [&](const VariableName& left) {
    return std::any_of(b.variables.begin(), b.variables.end(),
                       [&](const VariableName& right) { return overlap(left, right); });
  });
}

// Deadlocks, hangs and crashes are about no memory and stay alone. What one detector tells apart
// stays apart.
bool tells_the_same(const Finding& longer, const Finding& shorter) {
  for (const std::string& name : shorter.detectors) {
    if (std::binary_search(longer.detectors.begin(), longer.detectors.end(), name)) return false;
  }
  if (!same_memory(longer, shorter)) return false;
  const std::vector<Spot> all = spots(longer), some = spots(shorter);
  return !some.empty() && std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// One statement that a compiler made several accesses of, the copy of an object, say: a detector
// has as many findings, and all of them look alike.
bool looks_the_same(const Finding& a, const Finding& b) {
  if (std::tie(a.kind, a.label, a.summary, a.detectors) !=
      std::tie(b.kind, b.label, b.summary, b.detectors)) {
    return false;
  }
  const auto marked = [](const Finding& finding) {
    std::vector<std::tuple<std::string_view, EventKind, Spot>> out;
    for (const Step& step : finding.steps) {
      if (!step.role.empty()) out.emplace_back(step.role, step.kind, spot(step));
    }
    return out;
  };
  const auto all = marked(a);
  return !all.empty() && std::get<2>(all[0]) != Spot() && all == marked(b);
}

// Instances of the one are instances of the other, too.
void take_in(Finding& first, Finding& other) {
  first.count = std::max(first.count, other.count);
  first.rank = std::max(first.rank, other.rank);
  for (VariableName& variable : other.variables) {
    const bool known = std::any_of(first.variables.begin(), first.variables.end(),
                                   [&](const VariableName& v) { return v.name == variable.name; });
    if (!known) first.variables.push_back(std::move(variable));
  }
}

// How sure a label is of the bug.
int strength(FindingLabel label) {
  switch (label) {
    case FindingLabel::kUnlearned:
      return 0;
    case FindingLabel::kNotReproduced:
      return 1;
    case FindingLabel::kPredicted:
      return 2;
    case FindingLabel::kObserved:
      return 3;
    case FindingLabel::kConfirmed:
      return 4;
  }
  return 0;
}

// The shorter story in a sentence, by the roles of the longer one.
std::string in_a_sentence(const Finding& longer, const Finding& shorter) {
  std::vector<std::string> roles;
  for (const Step& step : longer.steps) {
    const bool named = !step.role.empty() &&
                       std::any_of(shorter.steps.begin(), shorter.steps.end(), [&](const Step& s) {
                         return !s.role.empty() && spot(s) == spot(step);
                       });
    if (named) roles.push_back(step.role);
  }
  const std::string who = fmt::format("{}", fmt::join(shorter.detectors, ", "));
  switch (shorter.kind) {
    case FindingKind::kDataRace:
      return fmt::format("{}: {} are a data race.", who, fmt::join(roles, " and "));
    case FindingKind::kInconsistentLocking:
      return fmt::format("{}: no lock was held at every access.", who);
    default:
      return fmt::format("{}: {}.", who, shorter.in_words);
  }
}

void take_over(Finding& longer, Finding& shorter) {
  std::string also = in_a_sentence(longer, shorter);
  std::vector<std::string> both;
  std::set_union(longer.detectors.begin(), longer.detectors.end(), shorter.detectors.begin(),
                 shorter.detectors.end(), std::back_inserter(both));
  longer.detectors = std::move(both);
  if (strength(shorter.label) > strength(longer.label)) longer.label = shorter.label;
  longer.rank = std::max(longer.rank, shorter.rank);
  if (longer.replay.empty()) longer.replay = std::move(shorter.replay);
  longer.notes.push_back(std::move(also));
}

// One after the other: `take` gives a finding to the first one before it that is `like` it.
template <typename Like, typename Take>
std::vector<Finding> merge_alike(std::vector<Finding> findings, Like like, Take take) {
  std::vector<Finding> out;
  for (Finding& finding : findings) {
    const auto first = std::find_if(out.begin(), out.end(),
                                    [&](const Finding& other) { return like(other, finding); });
    if (first == out.end()) {
      out.push_back(std::move(finding));
    } else {
      take(*first, finding);
    }
  }
  return out;
}

}  // namespace

std::vector<Finding> merge_findings(std::vector<Finding> findings) {
  findings = merge_alike(std::move(findings), looks_the_same, take_in);
  // The longest stories first, so that whatever a finding can be part of is there already.
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(marked_steps(b), b.rank) < std::tuple(marked_steps(a), a.rank);
  });
  std::vector<Finding> out = merge_alike(std::move(findings), tells_the_same, take_over);
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return out;
}

}  // namespace heddle
