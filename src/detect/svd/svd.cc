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
constexpr std::size_t kMostStores = 4;       // that are named besides the one that is drawn

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

// What happened, in a sentence. A variable whose name is not known is no help.
std::string in_words(const std::string& input, const std::string& target, Through through) {
  const char* const how = through == Through::kData      ? "written from"
                          : through == Through::kAddress ? "written at a place that came from"
                                                         : "written because of";
  if (input == target) {
    return fmt::format("`{}` was read, overwritten by another thread, then {} the old value", input,
                       how);
  }
  const std::string what = target.starts_with("0x") ? "unnamed memory" : "`" + target + "`";
  return fmt::format("{} was {} a value of `{}` that another thread had overwritten", what, how,
                     input);
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
  const EventOrdinal way =
      overlap(main.inside, main.store) ? 0 : main.store.ordinal - main.inside.ordinal;
  const auto [at, is_new] =
      numbers_.try_emplace({main.inside.site, main.remote.site}, known_.size());
  if (is_new) {
    known_.push_back({way, {main.store.site}, describe(violations, main)});
    return;
  }
  Known& known = known_[at->second];
  known.stores.insert(main.store.site);
  const std::uint64_t count = known.finding.count + 1;
  if (2 * way < known.way) {  // drawing is dear: not for every step nearer
    known.way = way;
    known.finding = describe(violations, main);
  }
  known.finding.count = count;
}

std::vector<Finding> SvdDetector::finish() {
  std::vector<Finding> out;
  out.reserve(known_.size());
  for (Known& known : known_) {
    name_other_stores(known);
    // A violation that happens often is more likely the way the program works than the bug.
    known.finding.rank = 1.0 / static_cast<double>(known.finding.count);
    out.push_back(std::move(known.finding));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return out;
}

// By their lines, each once, in the order of files and lines.
void SvdDetector::name_other_stores(Known& known) const {
  std::set<std::pair<std::string, std::uint32_t>> lines;
  for (const SiteId site : known.stores) {
    const Place place = online_.narrator().describe().place(site);
    if (place.line != 0) lines.emplace(place.file, place.line);
  }
  for (const Step& step : known.finding.steps) {
    if (step.role == "I") lines.erase({step.place.file, step.place.line});
  }
  if (lines.empty()) return;
  std::string names;
  std::size_t named = 0;
  for (const auto& [file, line] : lines) {
    if (named == kMostStores) break;
    names +=
        fmt::format("{}{}:{}", named++ == 0 ? "" : ", ", file.substr(file.rfind('/') + 1), line);
  }
  if (named < lines.size()) names += fmt::format(" and {} more", lines.size() - named);
  known.finding.notes.push_back(
      fmt::format("In other instances the old value was used at {}.", names));
}

Finding SvdDetector::describe(std::span<const Violation> violations, const Violation& main) {
  const Narrator& narrator = online_.narrator();
  Finding out;
  out.kind = FindingKind::kAtomicityViolation;
  out.detectors = {"svd"};
  out.summary = "input overwritten before the unit ended";
  out.variables = {narrator.variable(main.remote)};
  out.steps = {narrator.step(main.inside, "P"), narrator.step(main.remote, "R")};
  out.fingerprint = fingerprint(out);  // which store is drawn, and what else, differs between runs
  out.steps.push_back(narrator.step(main.store, "I"));
  out.steps[0].note = "input of the unit";
  out.steps[1].note = "overwrites it";
  out.steps[2].note = use(main.through);
  out.in_words = in_words(out.variables[0].name, narrator.variable(main.store).name, main.through);
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
  if (known_.size() < kMostDrawings) draw_unit(out, main);
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
