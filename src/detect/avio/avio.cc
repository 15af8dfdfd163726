#include "detect/avio/avio.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace heddle::avio {

void RecentValues::on(const Event& event, EventOrdinal ordinal) {
  if (entries_.empty()) entries_.resize(kKept);
  entries_[ordinal % kKept] = {ordinal, event.value};
}

std::optional<std::uint64_t> RecentValues::at(EventOrdinal ordinal) const {
  if (entries_.empty() || entries_[ordinal % kKept].ordinal != ordinal) return std::nullopt;
  return entries_[ordinal % kKept].value;
}

Avio::Avio(const Catalog& catalog, const Options& options)
    : catalog_(catalog),
      invariants_(options.invariants),
      describer_(catalog),
      finder_(options.granule, *this) {}

void Avio::on(std::span<const Event> batch, EventOrdinal first) {
  constexpr std::size_t kAhead = 16;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const Event& event = batch[n];
    if (n + kAhead < batch.size()) {
      finder_.shadow().prefetch_cell(batch[n + kAhead].address);
      finder_.shadow().prefetch_history(batch[n + kAhead / 2].address);
    }
    switch (event.kind) {
      case EventKind::kRead:
      case EventKind::kWrite:
      case EventKind::kRmw:
        on_access(event, first + n);
        break;
      case EventKind::kEnter:
      case EventKind::kLeave:
      case EventKind::kAcquire:
      case EventKind::kRelease:
        contexts_.on(event, first + n);
        break;
      case EventKind::kAlloc:
      case EventKind::kFree:
        describer_.on(event);
        finder_.on(event);
        break;
      case EventKind::kThreadBegin:
      case EventKind::kThreadEnd:
        finder_.on(event);
        break;
      default:
        break;
    }
  }
}

void Avio::on_access(const Event& event, EventOrdinal ordinal) {
  if (event.site >= executed_.size()) {
    executed_.resize(std::max<std::size_t>(catalog_.sites.size(), event.site + std::size_t{1}));
  }
  executed_[event.site] = 1;
  if (event.has_value) values_.on(event, ordinal);
  now_ = &event;
  finder_.access(event, ordinal, contexts_.current(event.thread));
}

void Avio::on_triple(const Triple& triple) {
  if (seen_for_this_access(triple)) return;
  split_pairs_.insert({triple.p.site, triple.i.site});
  if (invariants_ != nullptr) {
    const Guard verdict = guard(triple.i.site);
    if (verdict == Guard::kNeverSeen) ++unjudged_;
    if (verdict != Guard::kReport) return;
  }
  const StaticKey key{triple.split, triple.p.site, triple.r.site, triple.i.site};
  const auto [at, is_new] = index_.try_emplace(key, reports_.size());
  if (is_new) {
    reports_.push_back({key, describe(triple)});
  } else {
    ++reports_[at->second].finding.count;
  }
}

// An access of many bytes can complete the same triple in many cells.
bool Avio::seen_for_this_access(const Triple& triple) {
  constexpr std::size_t kFew = 16;
  const Instance instance{triple.split, triple.p.ordinal(), triple.r.ordinal()};
  if (last_i_ != finder_.ordinal(triple.i)) {
    last_i_ = finder_.ordinal(triple.i);
    seen_.clear();
    if (!seen_set_.empty()) seen_set_.clear();
  }
  if (seen_.size() < kFew) {
    if (std::find(seen_.begin(), seen_.end(), instance) != seen_.end()) return true;
    seen_.push_back(instance);
    return false;
  }
  if (seen_set_.empty()) seen_set_.insert(seen_.begin(), seen_.end());
  return !seen_set_.insert(instance).second;
}

Avio::Guard Avio::guard(SiteId site) {
  if (site >= guards_.size()) guards_.resize(site + std::size_t{1}, Guard::kUnknown);
  Guard& out = guards_[site];
  if (out != Guard::kUnknown) return out;
  const SiteKey key = catalog_.site(site).key;
  const auto learned = invariants_->sites().find(key);
  out = key == 0 || learned == invariants_->sites().end() || learned->second.executed.empty()
            ? Guard::kNeverSeen
        : invariants_->holds(learned->second) ? Guard::kReport
                                              : Guard::kDropped;
  return out;
}

RunEvidence Avio::evidence() const {
  RunEvidence out;
  for (SiteId id = 1; id < executed_.size(); ++id) {
    const Site& site = catalog_.site(id);
    if (executed_[id] == 0 || site.key == 0) continue;
    const Place place = describer_.place(id);
    const char* kind = site.kind == EventKind::kRead    ? "read"
                       : site.kind == EventKind::kWrite ? "write"
                                                        : "read-modify-write";
    SiteText text{kind, place.function,
                  fmt::format("{}:{}:{}", place.file, place.line, place.column),
                  std::string(catalog_.text(site.variable))};
    SiteText& known = out.executed[site.key];
    known = std::max(known, text);
  }
  for (const auto& [p, i] : split_pairs_) {
    const SiteKey key = catalog_.site(i).key;
    if (key != 0) out.split.insert({catalog_.site(p).key, key});
  }
  return out;
}

// Copies of one source line (inlined, instantiated in several units) are one site to the user.
std::vector<Finding> Avio::finish() {
  std::map<std::tuple<SplitCase, SiteKey, SiteKey, SiteKey>, std::size_t> by_keys;
  std::vector<Finding> out;
  for (Report& report : reports_) {
    const SiteKey p = catalog_.site(report.key.p).key;
    const SiteKey r = catalog_.site(report.key.r).key;
    const SiteKey i = catalog_.site(report.key.i).key;
    if (p != 0 && r != 0 && i != 0) {
      const auto [at, is_new] = by_keys.try_emplace({report.key.split, p, r, i}, out.size());
      if (!is_new) {
        out[at->second].count += report.finding.count;
        continue;
      }
    }
    out.push_back(std::move(report.finding));
  }
  reports_.clear();
  index_.clear();
  for (Finding& finding : out) finding.fingerprint = fingerprint(finding);

  const auto place_of = [](const Finding& finding, std::string_view role) {
    for (const Step& step : finding.steps) {
      if (step.role == role) return std::tie(step.place.file, step.place.line, step.place.column);
    }
    static const Place kNowhere;
    return std::tie(kNowhere.file, kNowhere.line, kNowhere.column);
  };
  std::stable_sort(out.begin(), out.end(), [&](const Finding& a, const Finding& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    for (const char* role : {"I", "P", "R"}) {
      const auto at_a = place_of(a, role);
      const auto at_b = place_of(b, role);
      if (at_a != at_b) return at_a < at_b;
    }
    return a.summary < b.summary;
  });
  return out;
}

}  // namespace heddle::avio
