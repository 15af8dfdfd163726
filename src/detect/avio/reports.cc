#include "detect/avio/reports.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace heddle::avio {

Finding* Reports::add(const Triple& triple) {
  const Key key{triple.split, triple.p.site, triple.r.site, triple.i.site};
  const auto [at, is_new] = index_.try_emplace(key, reports_.size());
  if (!is_new) {
    ++reports_[at->second].finding.count;
    return nullptr;
  }
  reports_.push_back({key, {}});
  return &reports_.back().finding;
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
