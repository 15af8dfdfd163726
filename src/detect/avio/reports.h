// Reports: findings unique by case and sites, with their instances counted, in a fixed order.
#pragma once

#include "detect/avio/touch.h"
#include "finding/finding.h"
#include "trace/catalog.h"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

class Reports {
 public:
  struct Key {
    SplitCase split{};
    SiteId p{}, r{}, i{};
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.split, key.p, key.r, key.i);
    }
  };
  static Key key(const Triple& triple) {
    return {triple.split, triple.p.site, triple.r.site, triple.i.site};
  }

  // The number of the finding with this key. A new one has a count of 0 and is to be filled.
  std::size_t add(const Key& key);
  Finding& operator[](std::size_t number) { return reports_[number].finding; }

  // Ranked; copies of one source line (inlined, instantiated in several units) are one site.
  std::vector<Finding> finish(const Catalog& catalog);

 private:
  struct Report {
    Key key;
    Finding finding;
  };

  absl::flat_hash_map<Key, std::size_t> index_;
  std::deque<Report> reports_;  // in the order of their first instances; they do not move
};

}  // namespace heddle::avio
