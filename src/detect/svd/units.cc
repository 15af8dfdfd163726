#include "detect/svd/units.h"

#include <algorithm>
#include <iterator>

namespace heddle::svd {
namespace {

std::uint64_t hash_ids(const std::vector<UnitId>& ids) {
  std::uint64_t h = ids.size();
  for (const UnitId id : ids) h = (h ^ id) * 0x9e3779b97f4a7c15ull;
  return h;
}

}  // namespace

UnitId Units::create(ThreadId thread) {
  ++created_;
  units_.push_back({0, thread, false, {}, {}});
  return static_cast<UnitId>(units_.size() - 1);
}

UnitId Units::root(UnitId id) {
  while (units_[id].merged_into != 0) {
    const UnitId next = units_[id].merged_into;
    if (units_[next].merged_into != 0) units_[id].merged_into = units_[next].merged_into;
    id = next;
  }
  return id;
}

UnitSet Units::intern(std::vector<UnitId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!ids.empty() && ids.front() == 0) ids.erase(ids.begin());
  if (ids.empty()) return 0;
  if (ids.size() == 1) return ids[0];
  std::vector<UnitSet>& bucket = by_hash_[hash_ids(ids)];
  for (const UnitSet set : bucket) {
    if (sets_[set & ~kSetBit] == ids) return set;
  }
  sets_.push_back(std::move(ids));
  bucket.push_back(static_cast<UnitSet>(sets_.size() - 1) | kSetBit);
  return bucket.back();
}

UnitSet Units::join(UnitSet a, UnitSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto known = joined_.find(key); known != joined_.end()) return known->second;
  std::vector<UnitId> ids;
  for (const UnitSet set : {a, b}) {
    for_each_live(set, [&](UnitId id) { ids.push_back(id); });
  }
  UnitSet result = intern(std::move(ids));
  if ((result & kSetBit) != 0 && sets_[result & ~kSetBit].size() > kMergeAbove)
    result = merge(result);
  joined_.emplace(key, result);
  return result;
}

UnitId Units::merge(UnitId a, UnitId b) {
  a = root(a);
  b = root(b);
  if (a == b) return a;
  if (units_[a].blocks.size() < units_[b].blocks.size()) std::swap(a, b);
  Unit& into = units_[a];
  Unit& from = units_[b];
  into.blocks.insert(into.blocks.end(), from.blocks.begin(), from.blocks.end());
  into.overwrites.insert(into.overwrites.end(), from.overwrites.begin(), from.overwrites.end());
  from.blocks = {};
  from.overwrites = {};
  from.merged_into = a;
  return a;
}

UnitId Units::merge(UnitSet set) {
  UnitId all = 0;
  for_each_live(set, [&](UnitId id) { all = all == 0 ? id : merge(all, id); });
  return all;
}

std::vector<BlockNumber> Units::end(UnitId id) {
  Unit& unit = units_[root(id)];
  unit.ended = true;
  unit.overwrites = {};
  return std::exchange(unit.blocks, {});
}

}  // namespace heddle::svd
