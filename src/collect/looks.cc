#include "collect/looks.h"

#include "collect/stretch.h"

#include <algorithm>
#include <new>

namespace heddle::collect {

namespace {

constexpr std::uint64_t kEverything = ~std::uint64_t{0};
constexpr std::uint64_t kNotCovered = kEverything << Shadow::kAddressBits;
constexpr std::uint64_t kGranule = std::uint64_t{1} << Shadow::kGranuleBits;
constexpr std::uint64_t kWidth = Shadow::kStates * kGranule;  // of a window

bool fits(std::uint64_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

// The looks that make a window with a given one.
//
// An address is taken to be a multiple of its size. So how neighbours lie in their granules is
// known as soon as one of them has eight bytes, or a multiple of that.
class Neighbours {
 public:
  Neighbours(std::span<const Look> looks, const std::vector<bool>& taken, std::size_t first)
      : looks_(looks) {
    const auto aligned = std::find_if(looks.begin(), looks.end(), [&](const Look& look) {
      return look.base == looks[first].base && look.size != 0 && look.size % kGranule == 0 &&
             look.offset - looks[first].offset + kWidth < 2 * kWidth;
    });
    if (aligned != looks.end()) {
      zero_ = aligned->offset - 2 * kWidth;
      for (std::size_t i = first; i < looks.size(); ++i) {
        if (!taken[i] && looks[i].base == looks[first].base && !add(i) && i == first) break;
      }
    }
    if (numbers_.empty()) numbers_ = {first};
  }

  const std::vector<std::size_t>& numbers() const { return numbers_; }

  Window window() const {
    const Look& first = looks_[numbers_.front()];
    Window window{.offset = first.offset,
                  .base = first.base,
                  .look_count = fits(first.size) ? std::uint16_t{1} : std::uint16_t{0},
                  .items = first.items,
                  .unlikely = first.unlikely,
                  .mask = 0xff,
                  .looks = nullptr};
    const bool simple = numbers_.size() == 1 && (fits(first.size) || end_ == 0);
    if (simple) return window;
    window.offset = zero_ + begin_;
    window.unlikely = kNotCovered | (kGranule - 1);
    window.mask = 0;
    bool in_a_row = numbers_.back() - numbers_.front() + 1 == numbers_.size();
    for (const std::size_t number : numbers_) {
      const Look& look = looks_[number];
      window.items |= look.items;
      window.mask |= states_of(look);
      in_a_row = in_a_row && fits(look.size);
    }
    // What is between them may be about the same granules, and then the order counts.
    window.look_count = in_a_row ? static_cast<std::uint16_t>(numbers_.size()) : 0;
    return window;
  }

 private:
  // Unless the window would become too wide by it.
  bool add(std::size_t number) {
    const std::uint64_t from = looks_[number].offset - zero_;
    const std::uint64_t size = looks_[number].size;
    if (from >= 4 * kWidth || size == 0 || size > kWidth) return false;
    const std::uint64_t begin = std::min(begin_, from & ~(kGranule - 1));
    const std::uint64_t end = std::max(end_, from + size);
    if (end - begin > kWidth) return false;
    begin_ = begin;
    end_ = end;
    numbers_.push_back(number);
    return true;
  }

  std::uint64_t states_of(const Look& look) const {
    const std::uint64_t from = look.offset - zero_ - begin_;
    const std::uint64_t first = from / kGranule;
    const std::uint64_t count = (from + look.size - 1) / kGranule - first + 1;
    return kEverything >> (64 - 8 * count) << 8 * first;
  }

  std::span<const Look> looks_;
  std::vector<std::size_t> numbers_;   // in order
  Address zero_ = 0;                   // a border of granules, before all of them
  std::uint64_t begin_ = kEverything;  // from there, of the window …
  std::uint64_t end_ = 0;              // … and of the last byte's access
};

std::vector<Look> looks_of(const RecordShape& shape) {
  std::vector<Look> looks;
  const auto add = [&](const Look& look) {
    const auto found = std::find_if(looks.begin(), looks.end(), [&](const Look& other) {
      return other.offset == look.offset && other.base == look.base && other.size == look.size;
    });
    if (found != looks.end()) {
      found->items |= look.items;
    } else {
      looks.push_back(look);
    }
  };
  for (std::size_t i = shape.items.size(); i-- > 0;) {
    const ShapeItem& item = shape.items[i];
    const Event& event = item.event;
    // What is copied as a whole is looked at like its parts.
    const bool parts = event.size % kGranule == 0 && event.size <= kWidth;
    const std::uint64_t size = parts ? kGranule : event.size;
    for (std::uint64_t done = 0; done < event.size; done += size) {
      add({.offset = event.address + done,
           .base = static_cast<std::uint16_t>(item.base),
           .size = static_cast<std::uint16_t>(size <= 0xffff ? size : 0),
           .items = std::uint32_t{1} << i,
           .unlikely = fits(size) ? kNotCovered | (size - 1) : kEverything,
           .last = fits(size) ? LastAccess::pack(event, size) : 0});
    }
  }
  std::reverse(looks.begin(), looks.end());
  return looks;
}

std::vector<Window> windows_of(std::span<const Look> looks) {
  std::vector<Window> windows;
  std::vector<bool> taken(looks.size());
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (taken[i]) continue;
    const Neighbours together(looks, taken, i);
    for (const std::size_t number : together.numbers()) taken[number] = true;
    windows.push_back(together.window());
    windows.back().looks = &looks[i];
  }
  return windows;
}

std::vector<Row> rows_of(const RecordShape& loop) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < loop.items.size(); ++i) {
    const ShapeItem& item = loop.items[i];
    const Row row{
        .offset = item.event.address,
        .base = item.base,
        .size = item.event.size,
        .step = loop.steps[i],
        .forward = loop.steps[i].word == 0 && loop.steps[i].distance > 0 &&
                   loop.steps[i].distance <= static_cast<std::int64_t>(kGranule) &&
                   item.event.size != 0,
        .in_last_round = i < loop.always,
        .alike = true,
        .last = fits(item.event.size) ? LastAccess::pack(item.event, item.event.size) : 0};
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.offset == row.offset && other.base == row.base && other.size == row.size &&
             other.step.distance == row.step.distance && other.step.word == row.step.word;
    });
    if (same == rows.end()) {
      rows.push_back(row);
    } else {
      same->alike = same->alike && same->in_last_round == row.in_last_round;
      same->in_last_round = same->in_last_round || row.in_last_round;
      same->last = row.last;
    }
  }
  return rows;
}

// In the order of their last accesses in a round.
std::vector<Lane> lanes_of(const RecordShape& loop) {
  std::vector<Lane> lanes;
  for (std::size_t i = loop.items.size(); i-- > 0;) {
    const Event& event = loop.items[i].event;
    const Lane lane{.item = static_cast<std::uint32_t>(i),
                    .base = static_cast<std::uint16_t>(loop.items[i].base),
                    .round_words = loop.steps[i].gathered ? loop.round_words : std::uint16_t{0},
                    .in_last_round = i < loop.always,
                    .size = static_cast<std::uint8_t>(fits(event.size) ? event.size : 0),
                    .items = std::uint32_t{1} << i,
                    .unlikely = fits(event.size) ? kNotCovered | (event.size - 1) : kEverything,
                    .last = fits(event.size) ? LastAccess::pack(event, event.size) : 0};
    const auto same = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& other) {
      return loop.items[other.item].event.address == event.address && other.base == lane.base &&
             loop.steps[other.item] == loop.steps[i] && other.in_last_round == lane.in_last_round &&
             other.unlikely == lane.unlikely;
    });
    if (same == lanes.end()) {
      lanes.push_back(lane);
    } else {
      same->items |= lane.items;
    }
  }
  std::reverse(lanes.begin(), lanes.end());
  return lanes;
}

// Makes the forms of one unit.
class Maker {
 public:
  Maker(Forms::OfUnit& of, std::span<const RecordShape* const> shapes) : of_(of), shapes_(shapes) {}

  Form slot(const CompiledSlot& slot) {
    const ShapeId shape = slot.joined != 0 ? of_.unit.joined[slot.joined - 1].shape : slot.shape;
    Form form = shape != 0 ? record(shape) : slot.joined != 0 ? nothing() : ranges(slot);
    form.words = slot.words;
    if (form.kind == Form::Kind::kEnter || form.kind == Form::Kind::kLeave) form.function = slot.id;
    form.has_frame = slot.has_frame;
    if (slot.call != 0) form.call = call(of_.unit.calls[slot.call - 1]);
    form.judge = Stretch::judge_of(form);
    return form;
  }

 private:
  // What will stay where it is, as long as the forms.
  template <typename T>
  std::span<T> keep(const std::vector<T>& all) {
    T* const room = static_cast<T*>(of_.memory.allocate(all.size() * sizeof(T), alignof(T)));
    std::uninitialized_copy(all.begin(), all.end(), room);
    static_assert(std::is_trivially_destructible_v<T>);
    return {room, all.size()};
  }

  Form record(ShapeId id) {
    const RecordShape& shape = *shapes_[id];
    Form form;
    form.shape = id;
    switch (shape.kind) {
      case RecordShape::Kind::kEnter:
        form.kind = Form::Kind::kEnter;
        return form;
      case RecordShape::Kind::kLeave:
        form.kind = Form::Kind::kLeave;
        return form;
      case RecordShape::Kind::kLoop:
        return shape.round_words != 0 ? gathering(form, shape) : loop(form, shape);
      case RecordShape::Kind::kSegment:
      case RecordShape::Kind::kCall:
      case RecordShape::Kind::kJoined:
        break;
    }
    if (shape.items.size() > Execution::kMostBits) {
      form.kind = Form::Kind::kManyItems;
      return form;
    }
    count_items(form, shape);
    const std::span<const Look> looks = keep(looks_of(shape));
    form.looks = looks.data();
    form.look_count = static_cast<std::uint16_t>(looks.size());
    const std::span<const Window> windows = keep(windows_of(looks));
    form.windows = windows.data();
    form.window_count = static_cast<std::uint16_t>(windows.size());
    form.kind = looks.empty() ? Form::Kind::kNothing : Form::Kind::kSegment;
    return form;
  }

  const Call* call(const CompiledCall& call) {
    return keep(std::vector<Call>{{&call, record(call.shape)}}).data();
  }

  static Form nothing() {
    Form form;
    form.kind = Form::Kind::kNothing;
    return form;
  }

  Form loop(Form form, const RecordShape& shape) {
    const std::span<const Row> rows = keep(rows_of(shape));
    form.rows = rows.data();
    form.round_items = static_cast<std::uint32_t>(shape.items.size());
    form.always = shape.always;
    form.count = static_cast<std::uint32_t>(rows.size());
    form.kind = Form::Kind::kLoop;
    return form;
  }

  // One with too many items takes the way of all others.
  Form gathering(Form form, const RecordShape& shape) {
    if (shape.items.size() > Execution::kMostBits) return form;
    const std::span<const Lane> lanes = keep(lanes_of(shape));
    form.lanes = lanes.data();
    form.window_count = static_cast<std::uint16_t>(lanes.size());
    form.kind = Form::Kind::kGathering;
    return form;
  }

  // One with too many items takes the way of all others.
  Form ranges(const CompiledSlot& slot) {
    Form form;
    if (slot.ranges == 0) return form;
    const RecordShape& shape = *shapes_[slot.ranges];
    if (shape.items.size() > Execution::kMostBits) return form;
    std::vector<Range> ranges;
    for (const ShapeItem& item : shape.items) {
      ranges.push_back({.offset = item.event.address,
                        .base = static_cast<std::uint16_t>(item.base),
                        .size_word = static_cast<std::uint16_t>(item.size_word),
                        .size = item.event.size,
                        .last = LastAccess::pack(item.event, 1)});
    }
    form.ranges = keep(ranges).data();
    form.shape = slot.ranges;
    count_items(form, shape);
    form.kind = Form::Kind::kRanges;
    return form;
  }

  static void count_items(Form& form, const RecordShape& shape) {
    form.items = static_cast<std::uint8_t>(shape.items.size());
    form.all = shape.items.size() == Execution::kMostBits ? Execution::kAll
                                                          : (std::uint32_t{1} << form.items) - 1;
  }

  Forms::OfUnit& of_;
  std::span<const RecordShape* const> shapes_;
};

}  // namespace

Event LastAccess::unpack(std::uint64_t word, Address granule) {
  Event event;
  event.order = static_cast<MemoryOrder>(word >> 58 & 7);
  event.kind = static_cast<EventKind>(word >> 56 & 3);
  event.size = (word >> 53 & 7) + 1;
  event.address = granule + (word >> 61);
  event.thread = static_cast<ThreadId>((word & kThreadBits) >> kThreadShift);
  event.site = static_cast<SiteId>(word);
  return event;
}

const Forms::OfUnit& Forms::of(const Unit& unit, std::span<const RecordShape* const> shapes) {
  if (unit.number >= units_.size()) units_.resize(unit.number + 1);
  std::unique_ptr<const OfUnit>& known = units_[unit.number];
  if (known != nullptr) return *known;
  auto made = std::make_unique<OfUnit>(unit);
  Maker maker(*made, shapes);
  for (const CompiledSlot& slot : unit.slots) made->slots.push_back(maker.slot(slot));
  known = std::move(made);
  return *known;
}

}  // namespace heddle::collect
