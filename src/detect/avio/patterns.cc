#include "detect/avio/patterns.h"

#include <algorithm>

namespace heddle::avio {

void Patterns::compile(const RecordShape& shape, Pattern& pattern) {
  pattern.known = true;
  pattern.items = static_cast<std::uint32_t>(shape.items.size());
  pattern.plain = shape.kind != RecordShape::Kind::kLoop && shape.items.size() <= 0xffff &&
                  std::all_of(shape.items.begin(), shape.items.end(), [](const ShapeItem& item) {
                    return (item.event.size == 4 || item.event.size == 8) && item.base <= 0xffff;
                  });
  if (!pattern.plain) return;
  for (std::size_t i = shape.items.size(); i-- > 0;) {
    const ShapeItem& item = shape.items[i];
    const auto number = static_cast<std::uint16_t>(i);
    const auto write = static_cast<std::uint16_t>(is_write(item.event.kind) ? i + 1 : 0);
    const auto same = [&](const PatternTouch& touch) {
      return touch.offset == item.event.address && touch.base == item.base &&
             touch.size == item.event.size;
    };
    const auto found = std::find_if(pattern.touches.begin(), pattern.touches.end(), same);
    if (found == pattern.touches.end()) {
      pattern.touches.push_back({.offset = item.event.address,
                                 .base = static_cast<std::uint16_t>(item.base),
                                 .size = static_cast<std::uint16_t>(item.event.size),
                                 .last = number,
                                 .write = write});
    } else if (found->write == 0) {
      found->write = write;
    }
  }
  std::reverse(pattern.touches.begin(), pattern.touches.end());
}

}  // namespace heddle::avio
