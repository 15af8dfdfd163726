#include "detect/svd/svd.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace heddle::svd {
namespace {

constexpr std::size_t kMostInputs = 4;       // overwritten ones that are drawn
constexpr std::size_t kMostStatements = 5;   // others of the unit that are drawn
constexpr std::size_t kMostDrawings = 1000;  // findings whose unit is looked up

bool overlap(const Witness& a, const Witness& b) {
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

const char* use(Through through) {
  switch (through) {
    case Through::kData:
      return "stores what was computed from it";
    case Through::kAddress:
      return "stores where it said";
    case Through::kControl:
      return "stores because of it";
  }
  return "";
}

}  // namespace

SvdDetector::SvdDetector(const Catalog& catalog, const OnlineOptions& options)
    : online_(catalog, options) {}

void SvdDetector::on(std::span<const Event> batch, EventOrdinal first) {
  while (!batch.empty()) {
    const std::size_t count = online_.on(batch, first);
    batch = batch.subspan(count);
    first += count;
    take_violations();
  }
}

EventOrdinal SvdDetector::on_executions(const ExecutionBatch& batch, EventOrdinal first) {
  return online_.on(batch, first, [this] { take_violations(); });
}

void SvdDetector::take_violations() {
  online_.take_violations(taken_);
  for (std::size_t i = 0, end = 0; i < taken_.size(); i = end) {
    while (end < taken_.size() && taken_[end].unit == taken_[i].unit) ++end;
    take(std::span(std::as_const(taken_)).subspan(i, end - i));
  }
}

void SvdDetector::take(std::span<const Violation> violations) {
  // A lost update of the variable that is stored tells most.
  const auto same = std::find_if(violations.begin(), violations.end(),
                                 [](const Violation& v) { return overlap(v.inside, v.store); });
  const Violation& main = same == violations.end() ? violations[0] : *same;
  const Key key{main.inside.site, main.remote.site, main.store.site};
  const auto [at, is_new] = known_.try_emplace(key, findings_.size());
  if (is_new) {
    findings_.push_back(describe(violations, main));
  } else {
    ++findings_[at->second].count;
  }
}

std::vector<Finding> SvdDetector::finish() {
  // A violation that happens often is more likely the way the program works than the bug.
  for (Finding& finding : findings_) finding.rank = 1.0 / static_cast<double>(finding.count);
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return std::move(findings_);
}

Finding SvdDetector::describe(std::span<const Violation> violations, const Violation& main) {
  const Narrator& narrator = online_.narrator();
  Finding out;
  out.kind = FindingKind::kAtomicityViolation;
  out.detectors = {"svd"};
  out.summary = "input overwritten before the unit ended";
  out.variables = {narrator.variable(main.remote)};
  out.steps = {narrator.step(main.inside, "P"), narrator.step(main.remote, "R"),
               narrator.step(main.store, "I")};
  out.steps[0].note = "input of the unit";
  out.steps[1].note = "overwrites it";
  out.steps[2].note = use(main.through);
  const std::string& input = out.variables[0].name;
  const std::string target = narrator.variable(main.store).name;
  out.in_words =
      input == target
          ? fmt::format(
                "`{}` was read, overwritten by another thread, then written from the old value",
                input)
          : fmt::format("`{}` was written from a value of `{}` that another thread had overwritten",
                        target, input);
  out.fingerprint = fingerprint(out);  // of the triple: the rest differs from run to run
  std::size_t drawn = 1;
  for (const Violation& other : violations) {
    if (&other == &main) continue;
    if (drawn++ >= kMostInputs) continue;
    VariableName variable = narrator.variable(other.remote);
    out.steps.push_back(narrator.step(other.inside, "P"));
    out.steps.back().note = fmt::format("input: {}", variable.name);
    if (other.remote.ordinal != main.remote.ordinal) {
      out.steps.push_back(narrator.step(other.remote, "R"));
      out.steps.back().note = fmt::format("overwrites {}", variable.name);
    }
    const bool named =
        std::any_of(out.variables.begin(), out.variables.end(),
                    [&](const VariableName& known) { return known.name == variable.name; });
    if (!named) out.variables.push_back(std::move(variable));
  }
  if (drawn > kMostInputs) {
    out.notes.push_back(
        fmt::format("{} more inputs of the unit had been overwritten.", drawn - kMostInputs));
  }
  if (findings_.size() < kMostDrawings) draw_unit(out, main);
  std::stable_sort(out.steps.begin(), out.steps.end(),
                   [](const Step& a, const Step& b) { return a.ordinal < b.ordinal; });
  return out;
}

// The unit's other statements, the latest of those before the store.
void SvdDetector::draw_unit(Finding& finding, const Violation& main) {
  std::vector<UnitMember> members = online_.members(main.unit);
  std::erase_if(members, [&](const UnitMember& member) {
    return member.access.ordinal >= main.store.ordinal ||
           std::any_of(finding.steps.begin(), finding.steps.end(),
                       [&](const Step& step) { return step.ordinal == member.access.ordinal; });
  });
  // One line of the source is drawn once, for its last access.
  std::set<std::pair<std::string, std::uint32_t>> drawn;
  std::reverse(members.begin(), members.end());
  std::erase_if(members, [&](const UnitMember& member) {
    const Place place = online_.narrator().describe().place(member.access.site);
    return !drawn.emplace(place.file, place.line).second;
  });
  std::reverse(members.begin(), members.end());
  const std::size_t left_out =
      members.size() > kMostStatements ? members.size() - kMostStatements : 0;
  for (const UnitMember& member : std::span(members).subspan(left_out)) {
    finding.steps.push_back(online_.narrator().step(member.access, ""));
    finding.steps.back().note = member.input ? "in the unit: input" : "in the unit";
  }
  if (left_out > 0) {
    finding.notes.push_back(
        fmt::format("The unit has {} earlier statement{}.", left_out, left_out == 1 ? "" : "s"));
  }
}

}  // namespace heddle::svd
