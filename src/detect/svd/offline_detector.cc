#include "detect/svd/offline_detector.h"

#include "detect/svd/offline.h"
#include "finding/fingerprint.h"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace heddle::svd {
namespace {

// More conflicts of one access say nothing new.
constexpr std::size_t kConflictsOfEach = 4;

}  // namespace

void OfflineDetector::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) {
    narrator_.on(event);
    if (graph_.nodes().size() >= kMaxNodes) {
      full_ = true;
      return;
    }
    graph_.on({&event, 1}, first++);
    const Witness now = narrator_.witness(event, first);
    contexts_.resize(graph_.nodes().size(), {now.stack, now.locks});
  }
}

Witness OfflineDetector::witness(NodeId id) const {
  const FlowNode& node = graph_.nodes()[id];
  Witness out;
  out.thread = node.thread;
  out.kind = node.kind;
  out.site = node.site;
  out.stack = contexts_[id].stack;
  out.locks = contexts_[id].locks;
  out.size = node.size;
  out.ordinal = node.ordinal;
  out.address = node.address;
  return out;
}

std::vector<Finding> OfflineDetector::finish() {
  const std::span<const FlowNode> nodes = graph_.nodes();
  const OfflineResult result = offline(nodes, kConflictsOfEach);
  std::vector<Finding> findings;
  std::map<std::pair<SiteId, SiteId>, std::size_t> known;
  for (const Conflict& conflict : result.conflicts) {
    const auto [at, is_new] = known.try_emplace(
        {nodes[conflict.inside].site, nodes[conflict.remote].site}, findings.size());
    if (!is_new) {
      ++findings[at->second].count;
      continue;
    }
    const OfflineUnit& unit = result.units[result.unit_of[conflict.inside]];
    // The next access of the unit after the conflict: what shows that it had not ended.
    NodeId later = kNoNode;
    for (const NodeId member : unit.members) {
      if (member > conflict.remote && is_access(nodes[member].kind)) {
        later = member;
        break;
      }
    }
    Finding out;
    out.kind = FindingKind::kAtomicityViolation;
    out.detectors = {"svd-offline"};
    out.summary = "conflict before the unit ended";
    out.variables = {narrator_.variable(witness(conflict.remote))};
    out.steps = {narrator_.step(witness(conflict.inside), "P"),
                 narrator_.step(witness(conflict.remote), "R")};
    out.steps[0].note = "in the unit";
    out.steps[1].note = "conflicts with it";
    if (later != kNoNode) {
      out.steps.push_back(narrator_.step(witness(later), "I"));
      out.steps[2].note = "the same unit goes on";
    }
    out.in_words = fmt::format("another thread accessed `{}` before the unit that had ended",
                               out.variables[0].name);
    if (full_) {
      out.notes.push_back(fmt::format(
          "the trace is longer than svd-offline keeps; only its first {} accesses were looked at",
          kMaxNodes));
    }
    out.fingerprint = fingerprint(out);
    findings.push_back(std::move(out));
  }
  for (Finding& finding : findings) finding.rank = 1.0 / static_cast<double>(finding.count);
  return findings;
}

}  // namespace heddle::svd
