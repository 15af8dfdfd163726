#include "collect/units.h"

#include "collect/execution_buffer.h"
#include "trace/catalog_codec.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace heddle::collect {
namespace {

constexpr std::size_t kMostItems = 1024;  // of a segment that is simple

Error damaged(std::string_view name, std::string_view what) {
  return Error{fmt::format("{}: what the program says about itself is damaged ({}); rebuild it",
                           name.empty() ? "a unit" : name, what)};
}

// The parts of a unit's copy, cut out with their lengths checked.
struct Parts {
  heddle_unit unit{};
  std::vector<heddle_slot> slots;
  std::span<const std::uint8_t> catalog;
  std::span<const std::uint8_t> layout;
  std::vector<std::uint64_t> symbols;
  std::string name;
};

class Cutter {
 public:
  explicit Cutter(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::span<const std::uint8_t> take(std::uint64_t count, std::uint64_t size) {
    if (failed_ || count > bytes_.size() || count * size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const auto part = bytes_.subspan(at_, count * size);
    at_ = std::min(bytes_.size(), (at_ + part.size() + 7) / 8 * 8);
    return part;
  }
  template <typename T>
  std::vector<T> take_array(std::uint64_t count) {
    const auto part = take(count, sizeof(T));
    std::vector<T> result(part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(result.data(), part.data(), result.size() * sizeof(T));
    return result;
  }
  bool failed() const { return failed_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

bool cut(std::span<const std::uint8_t> bytes, Parts& parts) {
  heddle_unit_copy copy;
  if (bytes.size() < sizeof copy) return false;
  std::memcpy(&copy, bytes.data(), sizeof copy);
  parts.unit = copy.unit;
  Cutter cutter(bytes.subspan(sizeof copy));
  parts.slots = cutter.take_array<heddle_slot>(copy.unit.slot_count);
  parts.catalog = cutter.take(copy.unit.catalog_size, 1);
  parts.layout = cutter.take(copy.unit.layout_size, 1);
  parts.symbols = cutter.take_array<std::uint64_t>(copy.unit.symbol_count);
  const auto name = cutter.take(copy.name_size, 1);
  parts.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  return !cutter.failed();
}

// Where an item's address comes from, after following items to the words they came from.
struct Root {
  std::uint16_t base{};
  std::int64_t offset{};
};

// Compiles the items of a segment or a loop one by one, and counts the record's words.
class ItemCompiler {
 public:
  ItemCompiler(const Catalog& catalog, const CatalogRemap& remap, const Parts& parts,
               std::uint64_t slot_address, unsigned first_word)
      : catalog_(catalog),
        remap_(remap),
        parts_(parts),
        slot_address_(slot_address),
        word_(first_word) {}

  bool add(SiteId site_id, const LayoutItem& from, std::vector<CompiledItem>& items) {
    if (site_id >= catalog_.sites.size()) return false;
    const Site& site = catalog_.sites[site_id];
    CompiledItem item;
    item.flag = site_id;
    item.words = static_cast<std::uint16_t>(word_);
    item.event.kind = site.kind;
    item.event.order = site.order;
    item.event.size = site.size & 0x7fffffffu;
    item.event.site = remap_.sites[site_id];
    item.no_address = from.source == LayoutItem::Source::kNone;
    const Root root = root_of(from);
    roots_.push_back(root);
    item.base = root.base;
    item.event.address = static_cast<Address>(root.offset);
    item.dynamic_size = from.dynamic_size;
    item.outcome = from.outcome;
    if (from.failure_order > static_cast<std::uint8_t>(MemoryOrder::kSeqCst)) return false;
    item.failure_order = static_cast<MemoryOrder>(from.failure_order);
    word_ += from.words();
    item.next = static_cast<std::uint16_t>(word_);
    items.push_back(item);
    return true;
  }

  // An item of a loop with this word, which is no word of the others.
  bool add_gathered(SiteId site_id, std::uint16_t word, std::vector<CompiledItem>& items) {
    if (!add(site_id, {.source = LayoutItem::Source::kNone}, items)) return false;
    items.back().no_address = false;
    items.back().base = roots_.back().base = word;
    return true;
  }

  // A word that is no item's.
  std::uint16_t take_word() { return static_cast<std::uint16_t>(word_++); }
  unsigned words() const { return word_; }

 private:
  Root root_of(const LayoutItem& from) const {
    Root root;
    switch (from.source) {
      case LayoutItem::Source::kNone:
        break;
      case LayoutItem::Source::kWord:
        root.base = static_cast<std::uint16_t>(word_);
        break;
      case LayoutItem::Source::kSymbol:
        root.offset = static_cast<std::int64_t>(parts_.symbols[from.reference] - slot_address_ +
                                                static_cast<std::uint64_t>(from.offset));
        break;
      case LayoutItem::Source::kItem:
        root = roots_[from.reference];
        root.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(root.offset) +
                                                static_cast<std::uint64_t>(from.offset));
        break;
    }
    return root;
  }

  const Catalog& catalog_;
  const CatalogRemap& remap_;
  const Parts& parts_;
  std::uint64_t slot_address_;
  unsigned word_;
  std::vector<Root> roots_;
};

// The segments that a record of slot `at` implies, the latest first; false when it cannot be.
bool implied_by(std::size_t at, const Parts& parts, const CatalogRemap& remap,
                std::vector<SegmentId>& implied) {
  while (parts.slots[at].before != 0) {
    at += static_cast<std::size_t>(std::int64_t{parts.slots[at].before});
    if (at >= parts.slots.size() || implied.size() == HEDDLE_MOST_IMPLIED) return false;
    const heddle_slot& slot = parts.slots[at];
    if (slot.kind != HEDDLE_SLOT_FLOW_SEGMENT || slot.index >= remap.segments.size()) return false;
    implied.push_back(remap.segments[slot.index]);
  }
  return true;
}

// Both: false when the items do not fit the slot's words.
bool compile_segment(const Segment& segment, const SegmentLayout& layout, ItemCompiler compiler,
                     CompiledSlot& slot, std::vector<CompiledItem>& items) {
  if (segment.items.size() != layout.size()) return false;
  slot.simple = layout.size() <= kMostItems;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (!compiler.add(segment.items[i].site, layout[i], items)) return false;
    const CompiledItem& item = items.back();
    if (item.no_address || item.dynamic_size || item.outcome) slot.simple = false;
  }
  return compiler.words() == slot.words + 1u;
}

bool compile_loop(const LoopLayout& layout, ItemCompiler compiler, const heddle_slot& slot,
                  std::vector<CompiledItem>& items, RecordShape& loop) {
  loop.always = layout.always;
  loop.round_words = static_cast<std::uint16_t>(layout.round_words());
  loop.last_words = static_cast<std::uint16_t>(layout.last_words());
  if (layout.round_words() != slot.round_words || slot.round_words > HEDDLE_LOOP_GATHERED) {
    return false;
  }
  if (loop.round_words != 0) compiler.take_word();  // the rounds before
  auto gathered = static_cast<std::uint16_t>(slot.words + 1u);
  for (const LoopItem& from : layout.items) {
    LoopStep step{.distance = from.distance};
    if (from.step == LoopItem::Step::kGathered) {
      if (!compiler.add_gathered(from.site, gathered++, items)) return false;
      step = {.gathered = true};
    } else if (!compiler.add(from.site, from.first, items)) {
      return false;
    }
    if (from.step == LoopItem::Step::kWord) step.word = compiler.take_word();
    if (from.step == LoopItem::Step::kItem) step = loop.steps[from.reference];
    // What goes where a gathered item goes does not move by itself, and what does not does.
    const bool follows =
        from.first.source == LayoutItem::Source::kItem && loop.steps[from.first.reference].gathered;
    if (step.gathered != (follows || from.step == LoopItem::Step::kGathered)) return false;
    loop.steps.push_back(step);
  }
  return compiler.words() == slot.words + 1u;
}

// The segments of a round, with shapes of their own; false when they are not what the loop is made
// of.
bool add_parts(std::span<const std::uint32_t> slots, Unit& unit, RecordShape& loop,
               std::span<const CompiledItem> items) {
  std::vector<std::uint32_t> words;  // by item
  for (std::size_t i = 0; i < items.size(); ++i) {
    const LoopWord word{items[i].base, loop.steps[i]};
    const auto known = std::find(loop.moving.begin(), loop.moving.end(), word);
    words.push_back(static_cast<std::uint32_t>(known - loop.moving.begin()));
    if (known == loop.moving.end()) loop.moving.push_back(word);
  }
  std::uint32_t at = 0;
  for (const std::uint32_t number : slots) {
    if (number >= unit.slots.size()) return false;
    const CompiledSlot& slot = unit.slots[number];
    const auto own = unit.items_of(slot);
    if (slot.kind != HEDDLE_SLOT_SEGMENT || !slot.simple || own.empty() ||
        own.size() > items.size() - at) {
      return false;
    }
    RecordShape shape;
    shape.kind = RecordShape::Kind::kSegment;
    shape.id = slot.id;
    shape.before = unit.implied[slot.implied];
    const LoopPart part{.begin = at, .end = at + slot.item_count};
    for (; at < part.end; ++at) {
      if (items[at].flag != own[at - part.begin].flag) return false;
      shape.items.push_back({.event = items[at].event, .base = words[at]});
    }
    loop.parts.push_back(part);
    loop.parts.back().shape = unit.add(std::move(shape));
  }
  return at == items.size();
}

// Nothing but dynamic sizes keeps the segment from being simple.
bool has_only_ranges(const Unit& unit, const CompiledSlot& slot) {
  const auto items = unit.items_of(slot);
  return items.size() <= kMostItems &&
         std::none_of(items.begin(), items.end(),
                      [](const CompiledItem& item) { return item.no_address || item.outcome; });
}

// Puts a joined record together from slots that are compiled.
class JoinedCompiler {
 public:
  JoinedCompiler(const Parts& parts, const CatalogRemap& remap, Unit& unit)
      : parts_(parts), remap_(remap), unit_(unit) {}

  // False: they do not fit together.
  bool add(std::size_t number) {
    number_ = number;
    const std::size_t end = number + 1 + parts_.slots[number].index;
    if (end > parts_.slots.size()) return false;
    for (std::size_t at = number + 1; at < end; ++at) {
      const heddle_slot& part = parts_.slots[at];
      if (part.index >= unit_.slots.size()) return false;
      const CompiledSlot& of = unit_.slots[part.index];
      if (part.kind == HEDDLE_SLOT_PART) {
        if (!add_segment(part.index, of)) return false;
      } else if (part.kind == HEDDLE_SLOT_CALL_PART && at + 1 < end &&
                 parts_.slots[at + 1].kind == HEDDLE_SLOT_CALL_SITE) {
        if (!add_call(of, parts_.slots[++at].index)) return false;
      } else {
        return false;
      }
    }
    CompiledSlot& slot = unit_.slots[number];
    if (words_ != slot.words || joined_.flow.size() > ExecutionBuffer::kMostAtOnce) return false;
    add_whole(slot);
    slot.first_item = static_cast<std::uint32_t>(unit_.items.size());
    slot.item_count = static_cast<std::uint32_t>(items_.size());
    unit_.items.insert(unit_.items.end(), items_.begin(), items_.end());
    unit_.joined.push_back(std::move(joined_));
    slot.joined = static_cast<std::uint32_t>(unit_.joined.size());
    return true;
  }

 private:
  bool add_segment(std::size_t number, const CompiledSlot& segment) {
    const bool has_items = segment.kind == HEDDLE_SLOT_SEGMENT && segment.simple;
    if (!has_items && segment.kind != HEDDLE_SLOT_FLOW_SEGMENT) return false;
    RecordShape shape = take_items(number, segment);
    shape.kind = RecordShape::Kind::kSegment;
    shape.id = segment.id;
    shape.before = unit_.implied[segment.implied];
    joined_.flow.push_back({.shape = unit_.add(std::move(shape))});
    return true;
  }

  // At the access level all of it is one execution.
  void add_whole(CompiledSlot& slot) {
    if (items_.empty()) return;
    RecordShape shape;
    shape.words = slot.words;
    for (const CompiledItem& item : items_) {
      shape.items.push_back({.event = item.event, .base = item.base});
    }
    shape.calls = std::move(calls_);
    const bool calls = !shape.calls.empty();
    shape.kind = calls ? RecordShape::Kind::kJoined : RecordShape::Kind::kSegment;
    joined_.shape = unit_.add(std::move(shape));
  }

  bool add_call(const CompiledSlot& enter, std::uint32_t call_site) {
    if (enter.kind != HEDDLE_SLOT_ENTER || enter.call == 0) return false;
    if (call_site >= remap_.sites.size()) return false;
    const SiteId site = remap_.sites[call_site];
    const CompiledCall& call = unit_.calls[enter.call - 1];
    const CompiledSlot& segment = *unit_.slot_at(call.segment);
    const CompiledSlot& leave = *unit_.slot_at(call.leave);
    // Where a shape's words are counted from, the object is word 2.
    const auto object = static_cast<std::uint16_t>(enter.has_this ? ++words_ : 0);
    const std::int32_t shift = object != 0 ? object - 2 : 0;
    event({.kind = JoinedEvent::Kind::kEnter, .object = object, .id = enter.id, .site = site});
    const auto begin = static_cast<std::uint32_t>(items_.size());
    RecordShape inside = take_items(segment_number(call), segment);
    const auto end = static_cast<std::uint32_t>(items_.size());
    if (begin == end) return false;
    calls_.push_back(
        {.function = enter.id, .site = site, .object = object, .begin = begin, .end = end});
    event({.kind = JoinedEvent::Kind::kLeave, .id = enter.id});
    inside.kind = RecordShape::Kind::kSegment;
    inside.id = segment.id;
    inside.before = unit_.implied[segment.implied];
    joined_.flow.push_back({enter.shape, site, shift});
    joined_.flow.push_back({.shape = unit_.add(std::move(inside))});
    joined_.flow.push_back({.shape = leave.shape});
    return true;
  }

  std::size_t segment_number(const CompiledCall& call) const {
    return (call.segment - unit_.slots_begin) / sizeof(heddle_slot);
  }

  void event(JoinedEvent event) {
    event.item = static_cast<std::uint32_t>(items_.size());
    joined_.events.push_back(event);
  }

  // The segment's items follow, with its words.
  RecordShape take_items(std::size_t number, const CompiledSlot& segment) {
    for (const SegmentId before : unit_.implied[segment.implied]) {
      event({.kind = JoinedEvent::Kind::kSegment, .id = before});
    }
    event({.kind = JoinedEvent::Kind::kSegment, .id = segment.id});
    RecordShape shape;
    shape.words = parts_.slots[number_].words;
    for (CompiledItem item : unit_.items_of(segment)) {
      // What is counted from the header is counted from another one now.
      if (item.base == 0) {
        item.event.address += (number - number_) * sizeof(heddle_slot);
      } else {
        item.base = static_cast<std::uint16_t>(item.base + words_);
      }
      item.words = static_cast<std::uint16_t>(item.words + words_);
      item.next = static_cast<std::uint16_t>(item.next + words_);
      shape.items.push_back({.event = item.event, .base = item.base});
      items_.push_back(item);
    }
    words_ += segment.words;
    return shape;
  }

  const Parts& parts_;
  const CatalogRemap& remap_;
  Unit& unit_;
  std::size_t number_ = 0;
  unsigned words_ = 0;
  std::vector<CompiledItem> items_;
  std::vector<ShapeCall> calls_;
  Joined joined_;
};

}  // namespace

Status UnitTable::add(std::uint64_t address, std::span<const std::uint8_t> copy) {
  Parts parts;
  if (!cut(copy, parts)) return damaged(parts.name, "its copy is too short");
  Catalog own;
  if (Status status = decode_catalog(parts.catalog, own); !status.ok()) {
    return damaged(parts.name, status.error().message);
  }
  for (std::size_t i = 0; i < own.symbols.size() && i < parts.symbols.size(); ++i) {
    own.symbols[i].address = parts.symbols[i];
  }
  Layout layout;
  const auto is_segment = [](const heddle_slot& slot) { return slot.kind == HEDDLE_SLOT_SEGMENT; };
  const LayoutLimits limits{.segments = static_cast<std::size_t>(
                                std::count_if(parts.slots.begin(), parts.slots.end(), is_segment)),
                            .symbols = parts.symbols.size(),
                            .sites = own.sites.size()};
  if (!decode_layout(parts.layout, limits, layout)) return damaged(parts.name, "its layout");

  const CatalogRemap remap = merger_.add(own);
  auto unit = std::make_unique<Unit>();
  unit->number = ++added_;
  unit->address = address;
  unit->slots_begin = reinterpret_cast<std::uint64_t>(parts.unit.slots);
  unit->slots_end = unit->slots_begin + parts.slots.size() * sizeof(heddle_slot);
  unit->flags_begin = reinterpret_cast<std::uint64_t>(parts.unit.site_flags);
  unit->first_shape = static_cast<ShapeId>(shapes_.size());
  unit->sites.assign(remap.sites.begin(), remap.sites.end());
  unit->name = parts.name;
  unit->slots.reserve(parts.slots.size());
  std::vector<FunctionId> functions;  // whose the slots are; in the unit's own catalog
  std::size_t segment_number = 0;
  std::uint32_t loop_number = 0;
  for (std::size_t i = 0; i < parts.slots.size(); ++i) {
    const heddle_slot& raw = parts.slots[i];
    CompiledSlot slot;
    RecordShape shape;
    slot.kind = raw.kind;
    slot.words = raw.words;
    slot.first_item = static_cast<std::uint32_t>(unit->items.size());
    const std::uint64_t slot_address = unit->slots_begin + i * sizeof(heddle_slot);
    switch (raw.kind) {
      case HEDDLE_SLOT_SEGMENT:
      case HEDDLE_SLOT_FLOW_SEGMENT: {
        if (raw.index >= own.segments.size()) return damaged(parts.name, "a slot's segment");
        slot.id = remap.segments[raw.index];
        if (!implied_by(i, parts, remap, shape.before)) return damaged(parts.name, "an order");
        std::reverse(shape.before.begin(), shape.before.end());
        if (!shape.before.empty()) {
          slot.implied = static_cast<std::uint32_t>(unit->implied.size());
          unit->implied.push_back(shape.before);
        }
        if (raw.kind == HEDDLE_SLOT_FLOW_SEGMENT) break;
        if (!compile_segment(own.segments[raw.index], layout.segments[segment_number++],
                             ItemCompiler(own, remap, parts, slot_address, 1), slot, unit->items)) {
          return damaged(parts.name, "a segment's items");
        }
        break;
      }
      case HEDDLE_SLOT_LOOP:
        if (raw.index != loop_number++ || raw.index >= layout.loops.size()) {
          return damaged(parts.name, "a slot's loop");
        }
        // The first word is the number of rounds.
        if (!compile_loop(layout.loops[raw.index], ItemCompiler(own, remap, parts, slot_address, 2),
                          raw, unit->items, shape)) {
          return damaged(parts.name, "a loop's items");
        }
        if (const auto& segments = layout.loops[raw.index].parts;
            !segments.empty() &&
            !add_parts(segments, *unit, shape, std::span(unit->items).subspan(slot.first_item))) {
          return damaged(parts.name, "a loop's parts");
        }
        break;
      case HEDDLE_SLOT_ENTER:
      case HEDDLE_SLOT_LEAVE:
      case HEDDLE_SLOT_RESYNC: {
        if (raw.index >= own.functions.size()) return damaged(parts.name, "a slot's function");
        const Function& function = own.functions[raw.index];
        slot.id = remap.functions[raw.index];
        slot.has_this = raw.kind == HEDDLE_SLOT_ENTER && (function.flags & Function::kMethod) != 0;
        slot.has_frame =
            raw.kind == HEDDLE_SLOT_RESYNC ||
            (raw.kind == HEDDLE_SLOT_ENTER && (function.flags & Function::kCatchesJumps) != 0);
        if (slot.words < (raw.kind == HEDDLE_SLOT_ENTER ? 1u : 0u) + (slot.has_this ? 1u : 0u) +
                             (slot.has_frame ? 1u : 0u)) {
          return damaged(parts.name, "an enter's words");
        }
        break;
      }
      case HEDDLE_SLOT_LIBCALL:
        if (raw.index >= own.sites.size()) return damaged(parts.name, "a slot's site");
        slot.id = remap.sites[raw.index];
        break;
      case HEDDLE_SLOT_JOINED:  // when all others are known
      case HEDDLE_SLOT_PART:
      case HEDDLE_SLOT_CALL_PART:
      case HEDDLE_SLOT_CALL_SITE:
        break;
      default:
        return damaged(parts.name, "a slot's kind");
    }
    slot.item_count = static_cast<std::uint32_t>(unit->items.size()) - slot.first_item;
    add_shape(*unit, slot, std::move(shape));
    unit->slots.push_back(slot);
    functions.push_back(raw.kind == HEDDLE_SLOT_SEGMENT ? own.segments[raw.index].function
                        : raw.kind == HEDDLE_SLOT_ENTER || raw.kind == HEDDLE_SLOT_LEAVE ? raw.index
                                                                                         : 0);
  }
  add_calls(*unit, functions);
  for (std::size_t i = 0; i < parts.slots.size(); ++i) {
    if (parts.slots[i].kind == HEDDLE_SLOT_JOINED && !JoinedCompiler(parts, remap, *unit).add(i)) {
      return damaged(parts.name, "what is joined");
    }
  }
  for (const auto& shape : unit->shapes) shapes_.push_back(shape.get());
  if (!unit->slots.empty()) {
    const auto place = std::upper_bound(
        units_.begin(), units_.end(), unit->slots_begin,
        [](std::uint64_t begin, const auto& other) { return begin < other->slots_begin; });
    units_.insert(place, std::move(unit));
  }
  recent_ = recent_caller_ = nullptr;
  by_flags_.clear();
  return Done{};
}

// Of what can be an execution. Its number holds once all of the unit's shapes are in shapes_.
void UnitTable::add_shape(Unit& unit, CompiledSlot& slot, RecordShape shape) {
  switch (slot.kind) {
    case HEDDLE_SLOT_SEGMENT:
      if (!slot.simple && !has_only_ranges(unit, slot)) return;
      shape.kind = RecordShape::Kind::kSegment;
      break;
    case HEDDLE_SLOT_FLOW_SEGMENT:
      shape.kind = RecordShape::Kind::kSegment;
      break;
    case HEDDLE_SLOT_LOOP:
      shape.kind = RecordShape::Kind::kLoop;
      break;
    case HEDDLE_SLOT_ENTER:
      shape.kind = RecordShape::Kind::kEnter;
      break;
    case HEDDLE_SLOT_LEAVE:
      shape.kind = RecordShape::Kind::kLeave;
      break;
    default:
      return;
  }
  shape.id = slot.id;
  shape.has_object = slot.has_this;
  shape.words = slot.words;
  for (const CompiledItem& item : unit.items_of(slot)) {
    shape.items.push_back({.event = item.event,
                           .base = item.base,
                           .size_word = item.dynamic_size ? item.next - 1u : 0});
  }
  const bool ranges = slot.kind == HEDDLE_SLOT_SEGMENT && !slot.simple;
  (ranges ? slot.ranges : slot.shape) = unit.add(std::move(shape));
}

// Of functions with one enter, one leave and one segment, which is simple. Whether they follow one
// another is seen when they are executed.
void UnitTable::add_calls(Unit& unit, const std::vector<FunctionId>& functions) {
  struct Parts {
    std::size_t enter = 0, segment = 0, leave = 0;
    int enters = 0, segments = 0, leaves = 0;
  };
  std::map<FunctionId, Parts> by_function;
  for (std::size_t i = 0; i < unit.slots.size(); ++i) {
    if (functions[i] == 0) continue;
    Parts& parts = by_function[functions[i]];
    const auto note = [i](std::size_t& slot, int& count) {
      slot = i;
      ++count;
    };
    if (unit.slots[i].kind == HEDDLE_SLOT_ENTER) note(parts.enter, parts.enters);
    if (unit.slots[i].kind == HEDDLE_SLOT_SEGMENT) note(parts.segment, parts.segments);
    if (unit.slots[i].kind == HEDDLE_SLOT_LEAVE) note(parts.leave, parts.leaves);
  }
  for (const auto& [function, parts] : by_function) {
    if (parts.enters != 1 || parts.segments != 1 || parts.leaves != 1) continue;
    CompiledSlot& enter = unit.slots[parts.enter];
    const CompiledSlot& segment = unit.slots[parts.segment];
    if (!segment.simple || enter.has_frame || unit.slots[parts.leave].words != 0) continue;
    const std::uint32_t segment_at = 1u + enter.words;
    const std::uint32_t leave_at = segment_at + 1u + segment.words;
    if (leave_at > 0xff) continue;
    RecordShape shape;
    shape.kind = RecordShape::Kind::kCall;
    shape.id = enter.id;
    shape.has_object = enter.has_this;
    shape.words = static_cast<std::uint8_t>(leave_at);
    for (const CompiledItem& item : unit.items_of(segment)) {
      shape.items.push_back({.event = item.event, .base = segment_at + item.base});
    }
    const auto address = [&](std::size_t slot) {
      return unit.slots_begin + slot * sizeof(heddle_slot);
    };
    unit.calls.push_back({.shape = unit.add(std::move(shape)),
                          .segment_at = segment_at,
                          .leave_at = leave_at,
                          .segment = address(parts.segment),
                          .leave = address(parts.leave)});
    enter.call = static_cast<std::uint32_t>(unit.calls.size());
  }
}

void UnitTable::remove(std::uint64_t address) {
  for (auto& unit : units_) {
    if (unit->address != address) continue;
    for (std::size_t i = 0; i < unit->shapes.size(); ++i) {
      removed_shapes_.push_back(static_cast<ShapeId>(unit->first_shape + i));
    }
    const bool known = std::any_of(gone_.begin(), gone_.end(),
                                   [&](const auto& other) { return other->name == unit->name; });
    (known ? removed_ : gone_).push_back(std::move(unit));
  }
  std::erase(units_, nullptr);
  recent_ = recent_caller_ = nullptr;
  by_flags_.clear();
}

void UnitTable::forget_removed() {
  for (const ShapeId shape : removed_shapes_) shapes_[shape] = nullptr;
  removed_shapes_.clear();
  removed_.clear();
}

const Unit* UnitTable::find_slowly(std::uint64_t slot) {
  const auto after = std::upper_bound(
      units_.begin(), units_.end(), slot,
      [](std::uint64_t wanted, const auto& unit) { return wanted < unit->slots_begin; });
  if (after == units_.begin()) return nullptr;
  const Unit* unit = std::prev(after)->get();
  if (slot >= unit->slots_end) return nullptr;
  recent_ = unit;
  return unit;
}

const Unit* UnitTable::find_by_flag(std::uint64_t flag) {
  if (by_flags_.empty()) {
    for (const auto& unit : units_) by_flags_.push_back(unit.get());
    std::sort(by_flags_.begin(), by_flags_.end(),
              [](const Unit* a, const Unit* b) { return a->flags_begin < b->flags_begin; });
  }
  const auto after = std::upper_bound(
      by_flags_.begin(), by_flags_.end(), flag,
      [](std::uint64_t wanted, const Unit* unit) { return wanted < unit->flags_begin; });
  if (after == by_flags_.begin()) return nullptr;
  const Unit* unit = *std::prev(after);
  if (flag - unit->flags_begin >= unit->sites.size()) return nullptr;
  recent_caller_ = unit;
  return unit;
}

}  // namespace heddle::collect
