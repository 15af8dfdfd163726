// PairLog: the pairs of sites (P, I) that some thread executed one after the other on the same
// bytes. For who learns.
#pragma once

#include "trace/event.h"

#include <utility>
#include <vector>

#include <absl/container/flat_hash_set.h>

namespace heddle::avio {

class PairLog {
 public:
  void note(SiteId p, SiteId i) {
    if (i >= last_.size()) last_.resize(i + std::size_t{1});
    if (last_[i] == p) return;  // mostly the same as before; site 0 stands for no site
    last_[i] = p;
    if (p != 0) pairs_.insert({p, i});
  }
  const absl::flat_hash_set<std::pair<SiteId, SiteId>>& all() const { return pairs_; }

 private:
  std::vector<SiteId> last_;  // by I
  absl::flat_hash_set<std::pair<SiteId, SiteId>> pairs_;
};

}  // namespace heddle::avio
