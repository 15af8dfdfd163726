#include "detect/avio/explain.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace heddle::avio {
namespace {

std::string at(const Place& place) {
  if (place.line == 0) return {};
  const std::size_t slash = place.file.rfind('/');
  return fmt::format(" ({}:{})",
                     slash == std::string::npos ? place.file : place.file.substr(slash + 1),
                     place.line);
}

std::string list(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t n = 0; n < names.size(); ++n) {
    out += n == 0 ? "" : n + 1 == names.size() ? " and " : ", ";
    out += names[n];
  }
  return out;
}

std::string held(const std::vector<HeldLock>& locks) {
  std::vector<std::string> names;
  names.reserve(locks.size());
  for (const HeldLock& lock : locks) {
    names.push_back(lock.mode == LockMode::kShared ? lock.name + " (shared)" : lock.name);
  }
  return names.empty() ? "no lock" : list(names);
}

// I's name for the variable; where only an address is known there (a copy, a library), another's.
const VariableName& best_named(const std::vector<Step>& steps) {
  const VariableName& by_i = steps[2].variable;
  if (!by_i.name.starts_with("0x")) return by_i;
  for (const Step& step : steps) {
    if (!step.variable.name.starts_with("0x")) return step.variable;
  }
  return by_i;
}

}  // namespace

void RecentValues::on(const Event& event, EventOrdinal ordinal) {
  if (entries_.empty()) entries_.resize(kKept);
  entries_[ordinal % kKept] = {ordinal, event.value};
}

std::optional<std::uint64_t> RecentValues::at(EventOrdinal ordinal) const {
  if (entries_.empty() || entries_[ordinal % kKept].ordinal != ordinal) return std::nullopt;
  return entries_[ordinal % kKept].value;
}

void Explainer::on(const Event& event, EventOrdinal ordinal) {
  if (event.kind == EventKind::kFork || event.kind == EventKind::kJoin) {
    lives_.on(event, ordinal);
    return;
  }
  contexts_.on(event, ordinal);
  if (event.kind == EventKind::kAcquire) {
    NamedLock& known = named_locks_[event.address / 8 % named_locks_.size()];
    if (known.lock == event.address && known.site == event.site) return;
    known = {event.address, event.site};
  }
  describer_.on(event);
}

Finding Explainer::describe(const Triple& triple, const char* detector) const {
  Finding finding;
  finding.kind = FindingKind::kAtomicityViolation;
  finding.detectors = {detector};
  finding.summary = summary(triple.split);
  finding.in_words = in_words(triple.split);
  finding.steps = {step(triple, triple.p, "P"), step(triple, triple.r, "R"),
                   step(triple, triple.i, "I")};
  finding.variables = {best_named(finding.steps)};
  explain_learning(triple, finding);
  if (by_order_of_threads(finding)) {
    finding.rank = invariants_ == nullptr ? 0.05 : 0.2;
    finding.notes.push_back(
        fmt::format("Thread {} was started after P and joined before I: no schedule can put R "
                    "elsewhere. More likely the consequence of a bug than one.",
                    finding.steps[1].thread));
  }
  explain_locks(triple, finding);
  return finding;
}

// R's thread lived between P and I.
bool Explainer::by_order_of_threads(const Finding& finding) const {
  const Step& p = finding.steps[0];
  const Step& r = finding.steps[1];
  const Step& i = finding.steps[2];
  return lives_.lies_between(r.thread, p.thread, p.ordinal, i.ordinal);
}

Step Explainer::step(const Triple& triple, const Touch& touch, const char* role) const {
  Step out;
  out.role = role;
  out.thread = finder_.thread(touch);
  out.thread_name = describer_.thread(out.thread);
  out.kind = touch.kind();
  const Site& site = catalog_.site(touch.site);
  out.order = site.order;
  out.place = describer_.place(touch.site);
  out.ordinal = finder_.ordinal(touch);
  out.stack = describer_.stack(contexts_.stacks(), contexts_.stack(touch.context), touch.site);
  for (const HeldLockRef& lock : contexts_.locks(touch.context)) {
    out.locks.push_back({describer_.object(lock.lock), lock.mode, describer_.place(lock.acquired)});
  }
  out.value = values_.at(out.ordinal);
  // I is at hand with its own address and size; of the others only the cell is known.
  const bool is_i = touch.bits == triple.i.bits;
  out.size = is_i ? triple.i_size : site.size;
  constexpr std::uint32_t kLongest = 64;  // a longer one is a copy of many variables
  const Address first_byte = triple.address + static_cast<unsigned>(std::countr_zero(triple.mask));
  if (triple.i_size <= kLongest) {
    out.variable = describer_.variable(touch.site, triple.i_address, triple.i_size);
  } else {
    out.variable = describer_.variable(touch.site, first_byte,
                                       static_cast<std::uint32_t>(std::popcount(triple.mask)));
  }
  return out;
}

void Explainer::explain_learning(const Triple& triple, Finding& finding) const {
  const std::string& p_function = finding.steps[0].place.function;
  const bool same_function = p_function == finding.steps[2].place.function;
  if (invariants_ == nullptr) {
    finding.label = FindingLabel::kUnlearned;
    finding.rank = same_function ? 0.15 : 0.1;
    return;
  }
  finding.label = FindingLabel::kObserved;
  const SiteKey p = catalog_.site(triple.p.site).key;
  const SiteKey i = catalog_.site(triple.i.site).key;
  const Invariants::Pair pair = invariants_->pair(p, i);
  const Invariants::LearnedSite& learned = invariants_->sites().at(i);
  const bool by_site = invariants_->holds(learned);
  const std::size_t runs = by_site ? learned.executed.size() : pair.made;
  const std::size_t violated = by_site ? invariants_->violated(learned).size() : pair.split;
  const auto confidence = static_cast<double>(runs) / static_cast<double>(runs + 10);
  finding.rank = (by_site ? 0.6 : 0.4) + 0.3 * confidence + (same_function ? 0.05 : 0);
  if (violated != 0) {
    finding.rank -= 0.1;
    finding.notes.push_back(
        fmt::format("{} split in {} of the {} passing runs that {}, within the threshold of {}.",
                    by_site ? "I was" : "P and I were", violated, runs,
                    by_site ? "executed it" : "made the pair", invariants_->threshold()));
  } else if (pair.made != 0) {
    finding.notes.push_back(fmt::format("P and I were never split in {} passing run{}.", pair.made,
                                        pair.made == 1 ? "" : "s"));
  } else {
    finding.notes.push_back(fmt::format(
        "I was never split in {} passing runs; none of them executed it after P.", runs));
  }
  if (!by_site) {
    finding.notes.emplace_back(
        "I was split after other accesses in passing runs, but never after P.");
  }
}

// Which locks each held, and where the local thread let go of one that could have kept P and I
// together.
void Explainer::explain_locks(const Triple& triple, Finding& finding) const {
  const Step& p = finding.steps[0];
  const Step& r = finding.steps[1];
  const Step& i = finding.steps[2];
  if (p.locks.empty() && r.locks.empty() && i.locks.empty()) {
    finding.notes.emplace_back("None of the three accesses held a lock.");
    return;
  }
  const std::vector<HeldLockRef> p_locks = contexts_.locks(triple.p.context);
  const std::vector<HeldLockRef> i_locks = contexts_.locks(triple.i.context);
  const std::vector<HeldLockRef> r_locks = contexts_.locks(triple.r.context);
  const auto holds = [](const std::vector<HeldLockRef>& locks, Address lock) {
    return std::any_of(locks.begin(), locks.end(),
                       [&](const HeldLockRef& held) { return held.lock == lock; });
  };
  std::vector<std::string> by_all, by_pair, let_go;
  std::vector<Step> releases;
  for (const HeldLockRef& lock : p_locks) {
    const std::string name = describer_.object(lock.lock);
    const bool i_too = holds(i_locks, lock.lock);
    const LetGo gone = contexts_.let_go(p.thread, lock.lock, p.ordinal);
    if (i_too) (holds(r_locks, lock.lock) ? by_all : by_pair).push_back(name);
    if (!gone) continue;
    Step release;
    release.thread = p.thread;
    release.thread_name = p.thread_name;
    release.kind = EventKind::kRelease;
    release.place = describer_.place(gone.site);
    release.ordinal = gone.ordinal;
    release.note = fmt::format("lets go of {}", name);
    if (i_too || holds(r_locks, lock.lock)) let_go.push_back(name + at(release.place));
    releases.push_back(std::move(release));
  }
  std::string note;
  if (!by_all.empty()) {
    note = fmt::format("P, R and I each held {}", list(by_all));
  } else if (!by_pair.empty()) {
    note = fmt::format("P and I held {}, R held {}", list(by_pair), held(r.locks));
  } else {
    note =
        fmt::format("P held {}, R held {}, I held {}", held(p.locks), held(r.locks), held(i.locks));
  }
  if (!let_go.empty()) {
    note += fmt::format("; thread {} let go of {} between P and I", p.thread, list(let_go));
    if (!by_all.empty()) finding.rank += 0.03;
  } else if (!by_pair.empty()) {
    note += fmt::format("; thread {} held it from P to I, so R must be made to take it", p.thread);
  }
  finding.notes.push_back(note + ".");
  for (Step& release : releases) finding.steps.push_back(std::move(release));
  std::stable_sort(finding.steps.begin(), finding.steps.end(),
                   [](const Step& a, const Step& b) { return a.ordinal < b.ordinal; });
}

}  // namespace heddle::avio
