#include "detect/avio/patterns.h"

#include <algorithm>

namespace heddle::avio {
namespace {

constexpr std::uint32_t kCell = 1u << kCellBits;

// What there is to do besides replacing the stamp depends on the flags of a location: a write that
// is followed by a read has to be put down where there is a history.
std::uint8_t flags_end(const PatternTouch& touch) {
  static_assert(kWrote == 1 && kHasHistory == 2 && kHalf == 4 && kIsReader > kHalf);
  if (touch.write == 0) return kWrote + kHasHistory;
  return touch.write == touch.last + 1 ? kHalf : kHasHistory;
}

void prepare(PatternTouch& touch) {
  const bool half = touch.size == 4;
  const bool simple = touch.size_word == 0 && (touch.size == 8 || half || touch.size == 1);
  touch.flags_end = flags_end(touch);
  touch.flags = half ? kHalf : 0;
  touch.now = touch.series(0).last | touch.flags;
  touch.unlikely = simple ? Pages::kBeyond | (touch.size - 1) : ~Address{0};
}

// A round of a loop that gathers, as if it were a segment. Items that get on from the same word in
// the same way share the word of the first.
RecordShape round_of(const RecordShape& loop) {
  RecordShape round;
  round.kind = RecordShape::Kind::kSegment;
  for (std::size_t i = 0; i < loop.items.size(); ++i) {
    std::size_t first = 0;
    while (loop.items[first].base != loop.items[i].base || loop.steps[first] != loop.steps[i]) {
      ++first;
    }
    round.items.push_back(loop.items[i]);
    round.items.back().base = static_cast<std::uint32_t>(1 + first);
  }
  return round;
}

void tell_lanes(const RecordShape& loop, Pattern& pattern) {
  pattern.by_lanes = true;
  for (PatternTouch touch : pattern.touches) {
    if (!loop.steps[touch.first].gathered) {
      pattern.by_lanes = pattern.by_lanes && touch.size == touch.whole;
      pattern.moving.push_back(touch);
      continue;
    }
    touch.base = loop.items[touch.first].base - 1u - loop.words;
    pattern.gathered.push_back(touch);
  }
}

// An Enter and a Leave have numbers, too.
std::vector<std::uint32_t> numbers_in_row(const RecordShape& shape) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t next = 0;
  walk_items(
      shape, Execution::of(0, 0, nullptr), [&](const ShapeCall&) { ++next; },
      [&](std::size_t) { numbers.push_back(next++); }, [&](const ShapeCall&) { ++next; });
  return numbers;
}

}  // namespace

void Patterns::compile(const RecordShape& shape, Pattern& pattern) const {
  if (shape.round_words != 0) {
    compile(round_of(shape), pattern);
    pattern.kind = shape.kind;
    tell_lanes(shape, pattern);
    return;
  }
  pattern.known = true;
  pattern.kind = shape.kind;
  const std::vector<std::uint32_t> numbers = numbers_in_row(shape);
  const bool loop = shape.kind == RecordShape::Kind::kLoop;
  const auto moves_alike = [&](std::size_t a, std::size_t b) {
    return !loop || (shape.steps[a].distance == shape.steps[b].distance &&
                     shape.steps[a].word == shape.steps[b].word);
  };
  for (std::uint32_t i = 0; i < shape.items.size(); ++i) {
    const ShapeItem& item = shape.items[i];
    const bool range = item.size_word != 0;
    const std::uint32_t whole = range ? 1 : item.event.size;
    const bool cells = !loop && whole % kCell == 0 && whole <= Pattern::kMostCells * kCell;
    const std::uint32_t size = cells ? kCell : whole;
    for (std::uint32_t part = 0; part < whole; part += size) {
      const Address offset = item.event.address + part;
      const auto same = [&](const PatternTouch& touch) {
        return touch.offset == offset && touch.base == item.base && touch.size == size &&
               touch.size_word == item.size_word && moves_alike(touch.first, i);
      };
      auto touch = std::find_if(pattern.touches.begin(), pattern.touches.end(), same);
      if (touch == pattern.touches.end()) {
        PatternTouch made;
        made.offset = offset;
        made.base = item.base;
        made.size = size;
        made.size_word = item.size_word;
        made.part = part;
        made.whole = whole;
        made.first = numbers[i];
        pattern.touches.push_back(made);
        touch = pattern.touches.end() - 1;
      }
      touch->last = numbers[i];
      if (is_write(item.event.kind)) touch->write = numbers[i] + 1;
    }
  }
  for (PatternTouch& touch : pattern.touches) prepare(touch);
  pattern.items = static_cast<std::uint32_t>(shape.items.size() + 2 * shape.calls.size());
  pattern.simple = simple_ && !loop && pattern.touches.size() <= Pattern::kMostTouches;
  if (loop) tell_lanes(shape, pattern);
}

}  // namespace heddle::avio
