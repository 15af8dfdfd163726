#include "detect/avio/spots.h"

namespace heddle::avio {

SpotId Spots::look_up(const Spot& spot) {
  const auto [at, is_new] = ids_.try_emplace(spot, static_cast<SpotId>(spots_.size()));
  if (is_new) spots_.push_back(spot);
  recent_[recent(spot)] = at->second;
  return at->second;
}

void Spots::clear() {
  spots_.resize(1);
  rows_.clear();
  recent_ = {};
  recent_rows_ = {};
  ids_.clear();
}

}  // namespace heddle::avio
