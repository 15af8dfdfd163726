#include "detect/avio/patterns.h"

#include <algorithm>

namespace heddle::avio {

void Patterns::compile(const RecordShape& shape, Pattern& pattern) {
  pattern.known = true;
  pattern.items = static_cast<std::uint32_t>(shape.items.size());
  const auto moves_alike = [&](std::size_t a, std::size_t b) {
    return shape.kind != RecordShape::Kind::kLoop ||
           (shape.steps[a].distance == shape.steps[b].distance &&
            shape.steps[a].word == shape.steps[b].word);
  };
  for (std::uint32_t i = 0; i < pattern.items; ++i) {
    const ShapeItem& item = shape.items[i];
    const auto same = [&](const PatternTouch& touch) {
      return touch.offset == item.event.address && touch.base == item.base &&
             touch.size == item.event.size && moves_alike(touch.first, i);
    };
    auto touch = std::find_if(pattern.touches.begin(), pattern.touches.end(), same);
    if (touch == pattern.touches.end()) {
      pattern.touches.push_back({item.event.address, item.base, item.event.size, i, i, 0});
      touch = pattern.touches.end() - 1;
    }
    touch->last = i;
    if (is_write(item.event.kind)) touch->write = i + 1;
  }
}

}  // namespace heddle::avio
