// The layout blob: how the collector gets the address and size of every item of a segment from the
// words that the segment recorded.
//
// An instrumented unit (struct heddle_unit) carries one blob. It has one entry for each slot of
// kind HEDDLE_SLOT_SEGMENT, in slot order; the entry of a slot with index s describes the items of
// Catalog::segments[s], one layout item for each access item, in the same order. Everything else
// about an item (kind, order, static size, flags) is in its Site.
//
//   blob    = version:u8 entry* loop_count:varint loop*
//   entry   = item_count:varint item*
//   item    = code:u8 [failure_order:u8]    when the code has kOutcome
//                     [reference:varint]    symbol k, or item j of the same segment
//                     [offset:zigzag]       for both of them
//
// The words after a slot's header belong to its items in order; an item consumes, in this order,
//   its address, if its source is kWord;
//   its length plus one, if the code has kDynamicSize (Site::size is 0 then);
//   its outcome, if the code has kOutcome: 1 the compare-exchange failed, 2 it succeeded. A failed
//     one is a Read with the order `failure_order` (a MemoryOrder); a successful one is an Rmw with
//     the order of the site. The outcome is written after the access, the others before.
// A word that was written is never 0 (the address of an empty range is written as 1), so the first
// 0 is where an unfinished segment stopped.
//
// A loop is what one slot of kind HEDDLE_SLOT_LOOP stands for, in slot order: all accesses of one
// round, in order. In round k, counted from 0, an item's address is its first one plus k times its
// step. The first `always` items happen in every round; the others not in the last, which ends at
// the loop's test.
//
//   loop      = always:varint item_count:varint loop_item* part_count:varint slot:varint*
//   loop_item = site:varint item step_code:u8 [step:zigzag | reference:varint]
//
// `item`, as above, is of its first address; neither its size nor an outcome is dynamic. The step
// is constant, a word of the record, or that of an earlier item. Or there is none, and the item is
// *gathered*: its source is kWord, and every round has that word anew; an item whose source is a
// gathered one has that one's step and goes where it goes. The record's words are the rounds, in a
// loop that gathers the rounds before them, then for each item its address and its step, as far as
// they are words that are not gathered, and then those that are, round by round.
//
// The parts are the segments of a round, in order, as the slots of their own records; their items
// are those of the loop. There are none if a round has segments without accesses that no record
// implies.
//
// A range of length 0 touches nothing: no event. A fence has source kNone: an event without
// address. An item whose Site::kind is kOncePass is the inline test of a static's guard; the event
// is of that kind. In general the event of an item is of the kind that its site says.
//
// No dependence on anything else, so that both sides can use it and neither trusts the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle {

inline constexpr std::uint8_t kLayoutVersion = 4;

struct LayoutItem {
  enum class Source : std::uint8_t { kNone = 0, kWord = 1, kSymbol = 2, kItem = 3 };
  Source source{Source::kWord};
  bool dynamic_size{};
  bool outcome{};
  std::uint8_t failure_order{};  // MemoryOrder, with `outcome`
  std::uint32_t reference{};     // symbol or item
  std::int64_t offset{};         // from the symbol, or from the item's address

  // How many words of the record the item consumes.
  unsigned words() const {
    return (source == Source::kWord ? 1u : 0u) + (dynamic_size ? 1u : 0u) + (outcome ? 1u : 0u);
  }
  bool operator==(const LayoutItem&) const = default;
};

using SegmentLayout = std::vector<LayoutItem>;

// An access of a loop.
struct LoopItem {
  enum class Step : std::uint8_t { kConstant = 0, kWord = 1, kItem = 2, kGathered = 3 };
  std::uint32_t site{};  // in the unit's catalog
  LayoutItem first;      // where its address in the first round comes from
  Step step{Step::kConstant};
  std::int64_t distance{};    // kConstant: from round to round
  std::uint32_t reference{};  // kItem

  // Of the record, and of every round.
  unsigned words() const {
    return step == Step::kGathered ? 0 : first.words() + (step == Step::kWord ? 1u : 0u);
  }
  unsigned round_words() const { return step == Step::kGathered ? 1 : 0; }
  bool operator==(const LoopItem&) const = default;
};

struct LoopLayout {
  std::uint32_t always{};  // items that happen in the last round, too
  std::vector<LoopItem> items;
  std::vector<std::uint32_t> parts{};  // slots

  // Of the record, after the header, without what is gathered.
  unsigned words() const {
    unsigned count = round_words() != 0 ? 2 : 1;
    for (const LoopItem& item : items) count += item.words();
    return count;
  }
  // What every round adds, and what the last one does.
  unsigned round_words() const { return round_words(items.size()); }
  unsigned last_words() const { return round_words(always); }

 private:
  unsigned round_words(std::size_t first_items) const {
    unsigned count = 0;
    for (std::size_t i = 0; i < first_items; ++i) count += items[i].round_words();
    return count;
  }
};

namespace layout_detail {

inline constexpr unsigned kSourceMask = 3;
inline constexpr unsigned kDynamicSize = 4;
inline constexpr unsigned kOutcome = 8;
inline constexpr unsigned kKnownBits = 15;

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

inline void put_zigzag(std::string& out, std::int64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

inline void put_item(std::string& out, const LayoutItem& item) {
  out.push_back(static_cast<char>(static_cast<unsigned>(item.source) |
                                  (item.dynamic_size ? kDynamicSize : 0u) |
                                  (item.outcome ? kOutcome : 0u)));
  if (item.outcome) out.push_back(static_cast<char>(item.failure_order));
  if (item.source != LayoutItem::Source::kSymbol && item.source != LayoutItem::Source::kItem) {
    return;
  }
  put_varint(out, item.reference);
  put_zigzag(out, item.offset);
}

struct Cursor {
  std::span<const std::uint8_t> bytes;
  std::size_t at{};
  bool failed{};

  std::uint8_t byte() {
    if (at >= bytes.size()) {
      failed = true;
      return 0;
    }
    return bytes[at++];
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
    failed = true;
    return 0;
  }
  std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
};

}  // namespace layout_detail

// Builds a blob; both add() in slot order, one call for each slot of their kind.
class LayoutEncoder {
 public:
  LayoutEncoder() : blob_(1, static_cast<char>(kLayoutVersion)) {}

  void add(std::span<const LayoutItem> items) {
    layout_detail::put_varint(blob_, items.size());
    for (const LayoutItem& item : items) layout_detail::put_item(blob_, item);
  }

  void add(const LoopLayout& loop) {
    using namespace layout_detail;
    ++loop_count_;
    put_varint(loops_, loop.always);
    put_varint(loops_, loop.items.size());
    for (const LoopItem& item : loop.items) {
      put_varint(loops_, item.site);
      put_item(loops_, item.first);
      loops_.push_back(static_cast<char>(item.step));
      if (item.step == LoopItem::Step::kConstant) put_zigzag(loops_, item.distance);
      if (item.step == LoopItem::Step::kItem) put_varint(loops_, item.reference);
    }
    put_varint(loops_, loop.parts.size());
    for (const std::uint32_t slot : loop.parts) put_varint(loops_, slot);
  }

  std::uint32_t loop_count() const { return loop_count_; }

  std::string blob() const {
    std::string all = blob_;
    layout_detail::put_varint(all, loop_count_);
    return all + loops_;
  }

 private:
  std::string blob_;
  std::string loops_;
  std::uint32_t loop_count_{};
};

struct LayoutLimits {
  std::size_t segments;  // how many HEDDLE_SLOT_SEGMENT slots the unit has
  std::size_t symbols;   // how many symbols
  std::size_t sites;     // how many sites
};

struct Layout {
  std::vector<SegmentLayout> segments;
  std::vector<LoopLayout> loops;
};

namespace layout_detail {

// Item `number` of its segment or loop.
inline bool take_item(Cursor& in, std::size_t number, const LayoutLimits& limits,
                      LayoutItem& item) {
  const std::uint8_t code = in.byte();
  if ((code & ~kKnownBits) != 0) return false;
  item.source = static_cast<LayoutItem::Source>(code & kSourceMask);
  item.dynamic_size = (code & kDynamicSize) != 0;
  item.outcome = (code & kOutcome) != 0;
  if (item.outcome) item.failure_order = in.byte();
  const bool symbol = item.source == LayoutItem::Source::kSymbol;
  if (symbol || item.source == LayoutItem::Source::kItem) {
    const std::uint64_t reference = in.varint();
    if (reference >= (symbol ? limits.symbols : number)) return false;
    item.reference = static_cast<std::uint32_t>(reference);
    item.offset = in.zigzag();
  }
  return !in.failed;
}

inline bool take_loop_item(Cursor& in, std::size_t number, const LayoutLimits& limits,
                           LoopItem& item) {
  const std::uint64_t site = in.varint();
  if (site >= limits.sites) return false;
  item.site = static_cast<std::uint32_t>(site);
  if (!take_item(in, number, limits, item.first)) return false;
  if (item.first.source == LayoutItem::Source::kNone || item.first.dynamic_size ||
      item.first.outcome) {
    return false;
  }
  const std::uint8_t step = in.byte();
  if (step > static_cast<std::uint8_t>(LoopItem::Step::kGathered)) return false;
  item.step = static_cast<LoopItem::Step>(step);
  if (item.step == LoopItem::Step::kConstant) item.distance = in.zigzag();
  if (item.step == LoopItem::Step::kItem) {
    const std::uint64_t reference = in.varint();
    if (reference >= number) return false;
    item.reference = static_cast<std::uint32_t>(reference);
  }
  if (item.step == LoopItem::Step::kGathered && item.first.source != LayoutItem::Source::kWord) {
    return false;
  }
  return !in.failed;
}

}  // namespace layout_detail

// Reads a blob, trusting nothing: false when it is of another version, damaged, or refers to a
// symbol, a site or an item that does not exist. `out` then holds the entries before the damage.
inline bool decode_layout(std::span<const std::uint8_t> blob, const LayoutLimits& limits,
                          Layout& out) {
  using namespace layout_detail;
  out = {};
  Cursor in{.bytes = blob};
  if (in.byte() != kLayoutVersion) return false;
  for (std::size_t segment = 0; segment < limits.segments; ++segment) {
    const std::uint64_t count = in.varint();
    if (in.failed || count > blob.size() - in.at) return false;
    SegmentLayout items(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!take_item(in, i, limits, items[i])) return false;
    }
    out.segments.push_back(std::move(items));
  }
  const std::uint64_t loops = in.varint();
  for (std::uint64_t loop = 0; loop < loops; ++loop) {
    LoopLayout layout;
    const std::uint64_t always = in.varint();
    const std::uint64_t count = in.varint();
    if (in.failed || count > blob.size() - in.at || always > count) return false;
    layout.always = static_cast<std::uint32_t>(always);
    layout.items.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!take_loop_item(in, i, limits, layout.items[i])) return false;
    }
    const std::uint64_t parts = in.varint();
    if (in.failed || parts > count) return false;
    for (std::uint64_t i = 0; i < parts; ++i) {
      layout.parts.push_back(static_cast<std::uint32_t>(in.varint()));
    }
    out.loops.push_back(std::move(layout));
  }
  return !in.failed && in.at == blob.size();
}

}  // namespace heddle
