#include "detect/avio/reports.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace heddle::avio {

std::size_t Reports::add(const Key& key) {
  const auto [at, is_new] = index_.try_emplace(key, reports_.size());
  if (is_new) {
    reports_.push_back({key, {}});
    reports_.back().finding.count = 0;
  }
  return at->second;
}

std::vector<Finding> Reports::finish(const Catalog& catalog) {
  using SiteKey = std::uint64_t;
  std::map<std::tuple<SplitCase, SiteKey, SiteKey, SiteKey>, std::size_t> by_keys;
  std::vector<Finding> out;
  for (Report& report : reports_) {
    const SiteKey p = catalog.site(report.key.p).key;
    const SiteKey r = catalog.site(report.key.r).key;
    const SiteKey i = catalog.site(report.key.i).key;
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

  // Among equals the one that happened first: what was crossed later may be its consequence.
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.rank > b.rank; });
  return out;
}

}  // namespace heddle::avio
