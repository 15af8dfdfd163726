#include "detect/avio/spots.h"

namespace heddle::avio {

SpotId Spots::look_up(const Spot& spot) {
  const auto [at, is_new] = ids_.try_emplace(spot, static_cast<SpotId>(spots_.size()));
  if (is_new) spots_.push_back(spot);
  recent_[recent(spot)] = at->second;
  return at->second;
}

SpotId Spots::row(ShapeId id, const RecordShape& shape, Actor actor, ContextId context) {
  const auto [at, is_new] =
      rows_.try_emplace({id, actor, context}, static_cast<SpotId>(spots_.size()));
  if (is_new) {
    for (const ShapeItem& item : shape.items) {
      spots_.push_back({actor, item.event.site, context, item.event.kind});
    }
  }
  return at->second;
}

void Spots::clear() {
  spots_.resize(1);
  rows_.clear();
  recent_ = {};
  ids_.clear();
}

}  // namespace heddle::avio
