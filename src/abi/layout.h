// The layout blob: how the collector gets the address and size of every item of a segment from the
// words that the segment recorded.
//
// An instrumented unit (struct heddle_unit) carries one blob. It has one entry for each slot of
// kind HEDDLE_SLOT_SEGMENT, in slot order; the entry of a slot with index s describes the items of
// Catalog::segments[s], one layout item for each access item, in the same order. Everything else
// about an item (kind, order, static size, flags) is in its Site.
//
//   blob    = version:u8 entry*
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

inline constexpr std::uint8_t kLayoutVersion = 1;

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

namespace layout_detail {

inline constexpr unsigned kSourceMask = 3;
inline constexpr unsigned kDynamicSize = 4;
inline constexpr unsigned kOutcome = 8;
inline constexpr unsigned kKnownBits = 15;

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
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
};

}  // namespace layout_detail

// Builds a blob; add() in slot order, one call for each HEDDLE_SLOT_SEGMENT slot.
class LayoutEncoder {
 public:
  LayoutEncoder() : blob_(1, static_cast<char>(kLayoutVersion)) {}

  void add(std::span<const LayoutItem> items) {
    using namespace layout_detail;
    put_varint(blob_, items.size());
    for (const LayoutItem& item : items) {
      blob_.push_back(static_cast<char>(static_cast<unsigned>(item.source) |
                                        (item.dynamic_size ? kDynamicSize : 0u) |
                                        (item.outcome ? kOutcome : 0u)));
      if (item.outcome) blob_.push_back(static_cast<char>(item.failure_order));
      if (item.source != LayoutItem::Source::kSymbol && item.source != LayoutItem::Source::kItem) {
        continue;
      }
      put_varint(blob_, item.reference);
      const auto offset = static_cast<std::uint64_t>(item.offset);
      put_varint(blob_, (offset << 1) ^ (item.offset < 0 ? ~std::uint64_t{0} : 0));
    }
  }

  const std::string& blob() const { return blob_; }

 private:
  std::string blob_;
};

struct LayoutLimits {
  std::size_t segments;  // how many HEDDLE_SLOT_SEGMENT slots the unit has
  std::size_t symbols;   // how many symbols
};

// Reads a blob, trusting nothing: false when it is of another version, damaged, or refers to a
// symbol or an item that does not exist. `out` then holds the entries before the damage.
inline bool decode_layout(std::span<const std::uint8_t> blob, const LayoutLimits& limits,
                          std::vector<SegmentLayout>& out) {
  using namespace layout_detail;
  out.clear();
  Cursor in{.bytes = blob};
  if (in.byte() != kLayoutVersion) return false;
  for (std::size_t segment = 0; segment < limits.segments; ++segment) {
    const std::uint64_t count = in.varint();
    if (in.failed || count > blob.size() - in.at) return false;
    SegmentLayout items;
    items.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint8_t code = in.byte();
      if ((code & ~kKnownBits) != 0) return false;
      LayoutItem item;
      item.source = static_cast<LayoutItem::Source>(code & kSourceMask);
      item.dynamic_size = (code & kDynamicSize) != 0;
      item.outcome = (code & kOutcome) != 0;
      if (item.outcome) item.failure_order = in.byte();
      const bool symbol = item.source == LayoutItem::Source::kSymbol;
      if (symbol || item.source == LayoutItem::Source::kItem) {
        const std::uint64_t reference = in.varint();
        if (reference >= (symbol ? limits.symbols : i)) return false;
        item.reference = static_cast<std::uint32_t>(reference);
        const std::uint64_t zigzag = in.varint();
        item.offset = static_cast<std::int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
      }
      if (in.failed) return false;
      items.push_back(item);
    }
    out.push_back(std::move(items));
  }
  return in.at == blob.size();
}

}  // namespace heddle
