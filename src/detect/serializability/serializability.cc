#include "detect/serializability/serializability.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace heddle::serializability {
namespace {

std::string_view verb_of(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "reads";
    case EventKind::kWrite:
      return "writes";
    case EventKind::kRmw:
      return "updates";
    case EventKind::kAcquire:
      return "acquires";
    case EventKind::kRelease:
      return "lets go of";
    case EventKind::kFork:
      return "starts";
    case EventKind::kJoin:
      return "joins";
    default:
      return "reaches";
  }
}

// A, B, … Z, A1, B1, …
std::string letter(std::size_t index) {
  const char first = static_cast<char>('A' + index % 26);
  return index < 26 ? std::string(1, first) : fmt::format("{}{}", first, index / 26);
}

}  // namespace

void SerializabilityDetector::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) {
    if (!is_access(event.kind)) narrator_.on(event);
    engine_.on(event, first++);
  }
}

bool SerializabilityDetector::wants(const Edge& closing) {
  const Key key{closing.source.site, closing.source.kind, closing.target.site,
                closing.target.kind, closing.kind,        closing.object};
  const auto [at, is_new] = by_place_.try_emplace(key, findings_.size());
  if (!is_new) ++findings_[at->second].count;
  return is_new;
}

std::string SerializabilityDetector::object(const Edge& edge) const {
  switch (edge.kind) {
    case EdgeKind::kVariable:
      return narrator_.describe().variable(edge.target.site, edge.object, 0).name;
    case EdgeKind::kLock:
      return narrator_.describe().object(edge.object);
    case EdgeKind::kFork:
    case EdgeKind::kJoin:
      break;
  }
  return edge.kind == EdgeKind::kFork ? "the child" : "the child's end";
}

Step SerializabilityDetector::step(const Touch& touch, const Edge& edge, std::string role) const {
  Witness witness;
  witness.thread = engine_.thread(touch);
  witness.kind = touch.kind;
  witness.site = touch.site;
  witness.stack = touch.stack;
  witness.locks = touch.locks;
  witness.ordinal = ordinal_of(touch.time);
  witness.address = edge.object;
  Step out = narrator_.step(witness, std::move(role));
  if (edge.kind != EdgeKind::kVariable) {
    out.variable.name = object(edge);
    out.note = fmt::format("{} {}", verb_of(touch.kind), object(edge));
  }
  return out;
}

void SerializabilityDetector::on_violation(const Violation& violation) {
  Finding finding;
  finding.kind = FindingKind::kNotSerializable;
  finding.detectors = {"serializability"};
  finding.in_words = "no serial order of these transactions explains the run";
  finding.rank = 0.7;

  // Consecutive edges meet in one transaction, or in two of the same thread: then the later one
  // gets a letter of its own.
  const std::span<const Edge> cycle = violation.cycle;
  std::string from = letter(0);
  std::size_t letters = 1;
  std::map<EventOrdinal, Step> steps;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    const Edge& edge = cycle[k];
    const bool closes = k + 1 == cycle.size();
    const std::string to = closes ? letter(0) : letter(letters++);
    if (edge.kind == EdgeKind::kVariable) {
      VariableName variable = narrator_.describe().variable(edge.target.site, edge.object, 0);
      const bool listed =
          std::any_of(finding.variables.begin(), finding.variables.end(),
                      [&](const VariableName& other) { return other.name == variable.name; });
      if (!listed) finding.variables.push_back(std::move(variable));
    }
    finding.notes.push_back(
        fmt::format("{} before {}{}: thread {} {} {} (event {}), then thread {} {} it (event {}).",
                    from, to, closes ? ", which closes the cycle" : "", engine_.thread(edge.source),
                    verb_of(edge.source.kind), object(edge), ordinal_of(edge.source.time),
                    engine_.thread(edge.target),
                    edge.kind == EdgeKind::kFork ? "begins after" : verb_of(edge.target.kind),
                    ordinal_of(edge.target.time)));
    steps.try_emplace(ordinal_of(edge.source.time), step(edge.source, edge, from));
    if (edge.kind != EdgeKind::kFork) {
      steps.try_emplace(ordinal_of(edge.target.time), step(edge.target, edge, to));
    }
    from = to;
    if (!closes && cycle[k + 1].source.begun() != edge.target.begun()) {
      from = letter(letters++);
      finding.notes.push_back(fmt::format("{} before {}: program order of thread {}.", to, from,
                                          engine_.thread(cycle[k + 1].source)));
    }
  }
  for (auto& [ordinal, step] : steps) finding.steps.push_back(std::move(step));
  finding.summary = fmt::format("{} transactions in a cycle", letters);
  findings_.push_back(std::move(finding));
}

std::vector<Finding> SerializabilityDetector::finish() {
  for (Finding& finding : findings_) finding.fingerprint = fingerprint(finding);
  return std::move(findings_);
}

}  // namespace heddle::serializability
