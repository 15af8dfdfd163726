#include "detect/avio/patterns.h"

#include <algorithm>

namespace heddle::avio {
namespace {

// What there is to do besides replacing the stamp depends on the flags of a location: a write that
// is followed by a read has to be put down where there is a history.
std::uint8_t flags_end(const PatternTouch& touch) {
  static_assert(kWrote == 1 && kHasHistory == 2 && kHalf == 4 && kIsReader > kHalf);
  if (touch.write == 0) return kWrote + kHasHistory;
  return touch.write == touch.last + 1 ? kHalf : kHasHistory;
}

void prepare(PatternTouch& touch) {
  const bool half = touch.size == 4;
  const bool simple = touch.size == 8 || half || touch.size == 1;
  touch.flags_end = flags_end(touch);
  touch.flags = half ? kHalf : 0;
  touch.now = touch.series(0).last | touch.flags;
  touch.unlikely = simple ? Pages::kBeyond | (touch.size - 1) : ~Address{0};
  touch.in_chunk = static_cast<std::uint32_t>(touch.size == 1 ? kInChunk : kCellInChunk);
  touch.second = half ? 4 : 0;
  touch.array = touch.size == 1 ? kBytes : 0;
  touch.shift = touch.size == 1 ? kCellBits : 0;
}

}  // namespace

void Patterns::compile(const RecordShape& shape, Pattern& pattern) {
  pattern.known = true;
  pattern.kind = shape.kind;
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
      PatternTouch made;
      made.offset = item.event.address;
      made.base = item.base;
      made.size = item.event.size;
      made.first = i;
      pattern.touches.push_back(made);
      touch = pattern.touches.end() - 1;
    }
    touch->last = i;
    if (is_write(item.event.kind)) touch->write = i + 1;
  }
  for (PatternTouch& touch : pattern.touches) prepare(touch);
  const bool segment =
      shape.kind == RecordShape::Kind::kSegment || shape.kind == RecordShape::Kind::kCall;
  pattern.simple = segment && pattern.touches.size() <= Pattern::kMostTouches;
}

}  // namespace heddle::avio
