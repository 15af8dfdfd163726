// Judge: what the learned file says about a pair, looked up once per pair.
#pragma once

#include "detect/avio/invariants.h"
#include "trace/catalog.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

class Judge {
 public:
  enum class Verdict : std::uint8_t {
    kUnknown,
    kReport,     // I is an invariant, or nothing was learned at all
    kPair,       // I is none, but the pair is
    kDropped,    // passing runs split it
    kNeverSeen,  // no passing run executed I
  };

  Judge(const Catalog& catalog, const Invariants* invariants)
      : catalog_(catalog), invariants_(invariants) {}

  // By the paper: about I, whatever its P.
  Verdict of(SiteId i) {
    if (invariants_ == nullptr) return Verdict::kReport;
    if (i >= by_site_.size()) by_site_.resize(i + std::size_t{1}, Verdict::kUnknown);
    if (by_site_[i] == Verdict::kUnknown) by_site_[i] = look_up(i);
    return by_site_[i];
  }

  Verdict of(SiteId p, SiteId i) {
    const Verdict verdict = of(i);
    if (verdict != Verdict::kDropped) return verdict;
    Verdict& pair = by_pair_[{p, i}];
    if (pair == Verdict::kUnknown) pair = look_up(p, i);
    return pair;
  }

 private:
  Verdict look_up(SiteId i) const {
    const SiteKey key = catalog_.site(i).key;
    const auto learned = invariants_->sites().find(key);
    if (key == 0 || learned == invariants_->sites().end() || learned->second.executed.empty()) {
      return Verdict::kNeverSeen;
    }
    return invariants_->holds(learned->second) ? Verdict::kReport : Verdict::kDropped;
  }
  Verdict look_up(SiteId p, SiteId i) const {
    const Invariants::Pair pair = invariants_->pair(catalog_.site(p).key, catalog_.site(i).key);
    return invariants_->holds(pair) ? Verdict::kPair : Verdict::kDropped;
  }

  const Catalog& catalog_;
  const Invariants* invariants_;
  std::vector<Verdict> by_site_;
  absl::flat_hash_map<std::pair<SiteId, SiteId>, Verdict> by_pair_;
};

}  // namespace heddle::avio
