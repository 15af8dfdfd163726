#include "collect/looks.h"

#include <algorithm>

namespace heddle::collect {

namespace {

Form::Code code_of_segment(unsigned looks) {
  switch (looks) {
    case 0:
      return Form::kNothing;
    case 1:
      return Form::kOneLook;
    case 2:
      return Form::kTwoLooks;
    case 3:
      return Form::kThreeLooks;
    case 4:
      return Form::kFourLooks;
    default:
      return Form::kSegment;
  }
}

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
  OfUnit made{.unit = &unit, .slots = {}, .calls = {}};
  for (const CompiledSlot& slot : unit.slots) {
    made.slots.push_back(slot.shape != 0 ? compile(slot.shape, *shapes[slot.shape])
                                         : ranges(unit, slot));
  }
  for (const CompiledCall& call : unit.calls) {
    made.calls.push_back(compile(call.shape, *shapes[call.shape]));
  }
  known = std::make_unique<const OfUnit>(std::move(made));
  return *known;
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
  const auto first = static_cast<std::ptrdiff_t>(looks_.size());
  for (std::size_t i = shape.items.size(); i-- > 0;) {
    const ShapeItem& item = shape.items[i];
    const Event& event = item.event;
    const bool fits = event.size == 1 || event.size == 2 || event.size == 4 || event.size == 8;
    const Look look{.offset = event.address,
                    .base = static_cast<std::uint16_t>(item.base),
                    .size = static_cast<std::uint16_t>(event.size <= 0xffff ? event.size : 0),
                    .items = std::uint32_t{1} << i,
                    .unlikely = fits
                                    ? ~((Address{1} << Shadow::kAddressBits) - 1) | (event.size - 1)
                                    : ~std::uint64_t{0},
                    .last = fits ? LastAccess::pack(event, event.size) : 0};
    const auto found = std::find_if(looks_.begin() + first, looks_.end(), [&](const Look& other) {
      return other.offset == look.offset && other.base == look.base && other.size == look.size;
    });
    if (found != looks_.end()) {
      found->items |= look.items;
    } else {
      looks_.push_back(look);
    }
  }
  std::reverse(looks_.begin() + first, looks_.end());
  form.looks = static_cast<std::uint32_t>(first);
  form.look_count = static_cast<std::uint8_t>(looks_.size() - form.looks);
  form.code = code_of_segment(form.look_count);
  return form;
}

}  // namespace heddle::collect
