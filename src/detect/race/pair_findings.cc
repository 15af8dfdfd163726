#include "detect/race/pair_findings.h"

#include "finding/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::race {
namespace {

bool is_sync(EventKind kind) {
  return (kind >= EventKind::kAcquire && kind <= EventKind::kJoin) || kind == EventKind::kFence;
}

// Elements of one array and bytes of one block are one variable here.
std::string_view without_position(std::string_view name) {
  const std::size_t end = std::min({name.find('['), name.find('+'), name.find(", byte ")});
  return name.substr(0, end);
}

std::string names(const std::vector<HeldLock>& locks) {
  std::string out;
  for (const HeldLock& lock : locks) {
    out += (out.empty() ? "" : ", ") + lock.name;
    if (lock.mode == LockMode::kShared) out += " (shared)";
  }
  return out.empty() ? "no lock" : out;
}

std::string note_of(const Event& event, const std::string& object) {
  switch (event.kind) {
    case EventKind::kAcquire:
      return event.outcome == OpOutcome::kOk ? "acquires " + object : "fails to acquire " + object;
    case EventKind::kRelease:
      return "lets go of " + object;
    case EventKind::kFork:
      return fmt::format("starts thread {}", event.value);
    case EventKind::kJoin:
      return fmt::format("joins thread {}", event.value);
    case EventKind::kWait:
      return "wakes up from " + object;
    case EventKind::kSignal:
    case EventKind::kBroadcast:
      return "signals " + object;
    case EventKind::kSemPost:
      return "posts " + object;
    case EventKind::kSemWait:
      return "waited for " + object;
    case EventKind::kBarrierArrive:
      return "arrives at " + object;
    case EventKind::kBarrierLeave:
      return "leaves " + object;
    case EventKind::kFence:
      return "fence";
    default:
      return "synchronises on " + object;
  }
}

}  // namespace

std::string_view verb_of(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "read";
    case EventKind::kWrite:
      return "write";
    case EventKind::kRmw:
      return "update";
    case EventKind::kFree:
      return "free";
    case EventKind::kAcquire:
      return "acquire";
    case EventKind::kRelease:
      return "release";
    default:
      return "synchronisation";
  }
}

void RecentSync::on(const Event& event, EventOrdinal ordinal) {
  const bool atomic = is_access(event.kind) && event.order != MemoryOrder::kPlain;
  if (!atomic && !is_sync(event.kind)) return;
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  Ring& ring = threads_[event.thread];
  if (ring.operations.size() < kKept) {
    ring.operations.push_back({event, ordinal});
    return;
  }
  ring.operations[ring.next] = {event, ordinal};
  ring.next = (ring.next + 1) % kKept;
}

RecentSync::Operation RecentSync::before(ThreadId thread, EventOrdinal ordinal) const {
  Operation out;
  if (thread >= threads_.size()) return out;
  for (const Operation& operation : threads_[thread].operations) {
    if (operation.ordinal < ordinal && (out.ordinal == kNoEvent || operation.ordinal > out.ordinal))
      out = operation;
  }
  return out;
}

RecentSync::Operation RecentSync::after(ThreadId thread, EventOrdinal ordinal) const {
  Operation out;
  if (thread >= threads_.size()) return out;
  for (const Operation& operation : threads_[thread].operations) {
    if (operation.ordinal > ordinal && operation.ordinal < out.ordinal) out = operation;
  }
  return out;
}

Finding* PairFindings::add(const Witness& earlier, const Witness& later) {
  const bool same_instance = earlier.ordinal == last_earlier_ && later.ordinal == last_later_;
  last_earlier_ = earlier.ordinal;
  last_later_ = later.ordinal;

  std::pair<Side, Side> sites{{earlier.site, earlier.kind}, {later.site, later.kind}};
  if (sites.second < sites.first) std::swap(sites.first, sites.second);
  const SitesAndAddress shortcut{sites, later.address};
  if (const auto known = by_address_.find(shortcut); known != by_address_.end()) {
    if (!same_instance) ++findings_[known->second].count;
    return nullptr;
  }
  const VariableName variable = narrator_.variable(later);
  const std::size_t next = findings_.size();
  const auto [at, is_new] =
      by_variable_.try_emplace({sites, std::string(without_position(variable.name))}, next);
  if (by_address_.size() < kMostAddresses) by_address_.emplace(shortcut, at->second);
  if (!is_new) {
    if (!same_instance) ++findings_[at->second].count;
    return nullptr;
  }

  Finding finding;
  finding.summary = fmt::format("{} – {}", verb_of(earlier.kind), verb_of(later.kind));
  finding.variables.push_back(variable);
  finding.steps.push_back(narrator_.step(earlier, "1"));
  finding.steps.push_back(narrator_.step(later, "2"));
  finding.notes.push_back(fmt::format("1 held {}; 2 held {}.", names(finding.steps[0].locks),
                                      names(finding.steps[1].locks)));
  add_nearby(finding, earlier, later);
  findings_.push_back(std::move(finding));
  return &findings_.back();
}

// As context: the last synchronisation before each access, and the next after the earlier one.
void PairFindings::add_nearby(Finding& finding, const Witness& earlier,
                              const Witness& later) const {
  const auto add = [&](const RecentSync::Operation& operation) {
    if (operation.ordinal == kNoEvent) return;
    if (operation.ordinal == earlier.ordinal || operation.ordinal == later.ordinal) return;
    Witness witness;
    witness.thread = operation.event.thread;
    witness.kind = operation.event.kind;
    witness.order = operation.event.order;
    witness.site = operation.event.site;
    witness.size = operation.event.size;
    witness.ordinal = operation.ordinal;
    witness.address = operation.event.address;
    Step step = narrator_.step(witness, "");
    if (!is_access(witness.kind)) {
      step.variable.name = narrator_.describe().object(witness.address);
      step.note = note_of(operation.event, step.variable.name);
    }
    finding.steps.push_back(std::move(step));
  };
  add(sync_.before(earlier.thread, earlier.ordinal));
  const RecentSync::Operation between = sync_.after(earlier.thread, earlier.ordinal);
  if (between.ordinal < later.ordinal) add(between);
  add(sync_.before(later.thread, later.ordinal));
  std::stable_sort(finding.steps.begin(), finding.steps.end(),
                   [](const Step& a, const Step& b) { return a.ordinal < b.ordinal; });
}

std::vector<Finding> PairFindings::take() {
  for (Finding& finding : findings_) finding.fingerprint = fingerprint(finding);
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return std::move(findings_);
}

}  // namespace heddle::race
