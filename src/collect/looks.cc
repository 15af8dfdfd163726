#include "collect/looks.h"

#include <algorithm>

namespace heddle::collect {

namespace {

Form::Code code_of_segment(unsigned looks, unsigned windows) {
  static_assert(Form::kFourLooks == Form::kOneLook + 3 &&
                Form::kSixWindows == Form::kOneWindow + 5);
  if (looks == 0) return Form::kNothing;
  if (windows > 6 || (windows > 4 && windows == looks)) return Form::kSegment;
  const unsigned first = windows < looks ? Form::kOneWindow : Form::kOneLook;
  return static_cast<Form::Code>(first + windows - 1);
}

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
                  .looks = 0};
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

// Of a segment that can be no execution.
Form ranges(const Unit& unit, const CompiledSlot& slot) {
  Form form;
  const auto items = unit.items_of(slot);
  const bool only_sizes = std::none_of(items.begin(), items.end(), [](const CompiledItem& item) {
    return item.no_address || item.outcome;
  });
  if (slot.kind == HEDDLE_SLOT_SEGMENT && only_sizes) form.code = Form::kRanges;
  form.words = slot.words;
  return form;
}

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
  OfUnit made{.unit = &unit, .slots = {}, .calls = {}, .parts = {}};
  for (const CompiledSlot& slot : unit.slots) {
    made.slots.push_back(slot.shape != 0    ? compile(slot.shape, *shapes[slot.shape])
                         : slot.joined != 0 ? join(slot, shapes, made)
                                            : ranges(unit, slot));
  }
  for (const CompiledCall& call : unit.calls) {
    made.calls.push_back(compile(call.shape, *shapes[call.shape]));
  }
  known = std::make_unique<const OfUnit>(std::move(made));
  return *known;
}

Form Forms::join(const CompiledSlot& slot, std::span<const RecordShape* const> shapes,
                 OfUnit& unit) {
  Form form;
  form.code = Form::kJoined;
  form.words = slot.words;
  form.looks = static_cast<std::uint32_t>(unit.parts.size());
  for (const JoinedExecution& part : unit.unit->joined[slot.joined - 1].executions) {
    unit.parts.push_back({compile(part.shape, *shapes[part.shape]), part.site, part.shift});
  }
  form.look_count = static_cast<std::uint16_t>(unit.parts.size() - form.looks);
  return form;
}

Form Forms::compile(ShapeId id, const RecordShape& shape) {
  Form form;
  form.shape = id;
  form.words = shape.words;
  switch (shape.kind) {
    case RecordShape::Kind::kEnter:
      form.code = Form::kEnter;
      return form;
    case RecordShape::Kind::kLeave:
      form.code = Form::kLeave;
      return form;
    case RecordShape::Kind::kLoop:
      form.code = Form::kLoop;
      return form;
    case RecordShape::Kind::kSegment:
    case RecordShape::Kind::kCall:
      break;
  }
  if (shape.items.size() > Execution::kMostBits) {
    form.code = Form::kManyItems;
    return form;
  }
  form.items = static_cast<std::uint8_t>(shape.items.size());
  form.all = shape.items.size() == Execution::kMostBits ? Execution::kAll
                                                        : (std::uint32_t{1} << form.items) - 1;
  add_looks(form, shape);
  add_windows(form);
  form.code = code_of_segment(form.look_count, form.window_count);
  return form;
}

void Forms::add_looks(Form& form, const RecordShape& shape) {
  const auto first = static_cast<std::ptrdiff_t>(looks_.size());
  const auto add = [&](const Look& look) {
    const auto found = std::find_if(looks_.begin() + first, looks_.end(), [&](const Look& other) {
      return other.offset == look.offset && other.base == look.base && other.size == look.size;
    });
    if (found != looks_.end()) {
      found->items |= look.items;
    } else {
      looks_.push_back(look);
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
  std::reverse(looks_.begin() + first, looks_.end());
  form.looks = static_cast<std::uint32_t>(first);
  form.look_count = static_cast<std::uint16_t>(looks_.size() - form.looks);
}

void Forms::add_windows(Form& form) {
  const std::span<const Look> looks(looks_.data() + form.looks, form.look_count);
  form.windows = static_cast<std::uint32_t>(windows_.size());
  std::vector<bool> taken(looks.size());
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (taken[i]) continue;
    const Neighbours together(looks, taken, i);
    for (const std::size_t number : together.numbers()) taken[number] = true;
    windows_.push_back(together.window());
    windows_.back().looks = form.looks + static_cast<std::uint32_t>(i);
  }
  form.window_count = static_cast<std::uint16_t>(windows_.size() - form.windows);
}

}  // namespace heddle::collect
