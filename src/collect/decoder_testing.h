// For tests of the decoder: a unit made by hand, and ways to decode what it recorded.
#pragma once

#include "collect/decoder.h"
#include "collect/filter_testing.h"
#include "trace/catalog_codec.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::collect {

inline constexpr std::uint64_t kUnit = 0x5000;
inline constexpr std::uint64_t kSlots = 0x6000;
inline constexpr std::uint64_t kFlags = 0x7000;
inline constexpr std::uint64_t kSymbol = 0x8000;

// Batch by batch, as a session does.
inline Status decode_all(Decoder& decoder, const std::vector<std::uint64_t>& words, Tail tail,
                         std::vector<Event>& out) {
  for (std::size_t at = 0; at < words.size();) {
    EventBuffer batch;
    Status status = decoder.decode(words, tail, batch, at);
    out.insert(out.end(), batch.events().begin(), batch.events().end());
    if (!status.ok()) return status;
  }
  return Done{};
}

// The same by executions.
inline Status execute_all(Decoder& decoder, const std::vector<std::uint64_t>& words, bool flow,
                          EventTaker& taker, Tail tail = Tail::kWhole) {
  ExecutionBuffer buffer;
  decoder.execute_into(&buffer);
  EventOrdinal ordinal = 0;
  for (std::size_t at = 0; at < words.size();) {
    EventBuffer batch;
    buffer.resize(0);
    Status status = decoder.decode(words, tail, batch, at);
    ordinal =
        taker.on_executions({buffer.executions(), batch.events(), decoder.shapes(), flow}, ordinal);
    if (!status.ok()) return status;
  }
  return Done{};
}

// The same through the filter of shared accesses.
inline Status filter_all(Decoder& decoder, const std::vector<std::uint64_t>& words,
                         SharedFilter& filter) {
  decoder.filter_into(&filter);
  Status status = Done{};
  for (std::size_t at = 0; at < words.size() && status.ok();) {
    EventBuffer none;
    status = decoder.decode(words, Tail::kWhole, none, at);
    EXPECT_EQ(none.size(), 0u);
    filter.hand_over();
  }
  return status;
}

// What order means of events that the filter may deliver late: for each granule, its accesses; and
// for each thread, what it did, where accesses that nothing else stands between count as a set.
using Step = std::tuple<ThreadId, EventKind, Address, std::uint64_t, SiteId, std::uint64_t>;
inline Step step(const Event& event) {
  return {event.thread, event.kind, event.address, event.size, event.site, event.value};
}
inline std::map<Address, std::vector<Step>> by_granule(const std::vector<Event>& events) {
  std::map<Address, std::vector<Step>> accesses;
  for (const Event& event : events) {
    if (!is_access(event.kind)) continue;
    const Address last = (event.address + event.size - 1) / 8;
    for (Address at = event.address / 8; at <= last; ++at) accesses[at].push_back(step(event));
  }
  return accesses;
}
inline std::map<ThreadId, std::vector<std::multiset<Step>>> by_thread(
    const std::vector<Event>& events) {
  std::map<ThreadId, std::vector<std::multiset<Step>>> steps;
  for (const Event& event : events) {
    auto& of_thread = steps[event.thread];
    if (of_thread.empty() || !is_access(event.kind)) of_thread.emplace_back();
    of_thread.back().insert(step(event));
  }
  return steps;
}

inline std::vector<Event> without_empty_calls(const std::vector<Event>& events) {
  std::vector<Event> out;
  for (const Event& event : events) {
    if (event.kind == EventKind::kLeave && !out.empty() && out.back().kind == EventKind::kEnter) {
      out.pop_back();
    } else {
      out.push_back(event);
    }
  }
  return out;
}

// A unit made by hand, as the plugin would make it, in a side region of its own.
class DecoderTest : public ::testing::Test {
 protected:
  SiteId site(EventKind kind, std::uint32_t size, MemoryOrder order = MemoryOrder::kPlain) {
    Site site;
    site.kind = kind;
    site.size = size;
    site.order = order;
    site.line = static_cast<std::uint32_t>(own_.sites.size());
    own_.sites.push_back(site);
    return static_cast<SiteId>(own_.sites.size() - 1);
  }

  FunctionId function(const char* name, std::uint16_t flags = 0) {
    Function function;
    function.name = own_.strings.intern(name);
    function.linkage_name = function.name;
    function.flags = flags;
    own_.functions.push_back(function);
    return static_cast<FunctionId>(own_.functions.size() - 1);
  }

  // Adds a segment and returns the address of its slot.
  std::uint64_t segment(const std::vector<std::pair<SiteId, LayoutItem>>& items,
                        FunctionId of = 0) {
    Segment segment;
    segment.function = of;
    SegmentLayout layout;
    unsigned words = 0;
    for (const auto& [site, item] : items) {
      AccessItem access;
      access.site = site;
      segment.items.push_back(access);
      layout.push_back(item);
      words += item.words();
    }
    own_.segments.push_back(segment);
    layout_.add(layout);
    return slot(HEDDLE_SLOT_SEGMENT, static_cast<std::uint32_t>(own_.segments.size() - 1), words);
  }

  // Adds a loop that reads doubles from a word on and writes bytes from a symbol on.
  std::uint64_t loop() {
    own_.symbols.emplace_back();
    LoopLayout layout;
    layout.items.resize(2);
    layout.items[0].site = site(EventKind::kRead, 8);
    layout.items[0].distance = 8;
    layout.items[1].site = site(EventKind::kWrite, 1);
    layout.items[1].first = symbol(1);
    layout.items[1].distance = 1;
    return loop(layout);
  }
  std::uint64_t loop(const LoopLayout& layout) {
    layout_.add(layout);
    const std::uint64_t at = slot(HEDDLE_SLOT_LOOP, layout_.loop_count() - 1, layout.words());
    slots_.back().round_words = static_cast<std::uint16_t>(layout.round_words());
    return at;
  }
  LoopItem gathered(EventKind kind, std::uint32_t size) {
    LoopItem item;
    item.site = site(kind, size);
    item.step = LoopItem::Step::kGathered;
    return item;
  }
  // Where item `number`, which is gathered, is.
  LoopItem following(EventKind kind, std::uint32_t size, std::uint32_t number,
                     std::int64_t offset) {
    LoopItem item = moving(kind, size, 0, from_item(number, offset));
    item.step = LoopItem::Step::kItem;
    item.reference = number;
    return item;
  }
  LoopItem moving(EventKind kind, std::uint32_t size, std::int64_t distance, LayoutItem first) {
    LoopItem item;
    item.site = site(kind, size);
    item.first = first;
    item.distance = distance;
    return item;
  }

  std::uint64_t slot(heddle_slot_kind kind, std::uint32_t index, unsigned words) {
    heddle_slot slot{};
    slot.index = index;
    slot.kind = static_cast<std::uint8_t>(kind);
    slot.words = static_cast<std::uint8_t>(words);
    slots_.push_back(slot);
    return kSlots + (slots_.size() - 1) * sizeof(heddle_slot);
  }

  std::vector<std::uint8_t> unit_copy() const {
    const std::vector<std::uint8_t> catalog = encode_catalog(own_);
    const std::string name = "unit.cc";
    heddle_unit_copy copy{};
    copy.unit.abi_version = HEDDLE_ABI_VERSION;
    copy.unit.slots = reinterpret_cast<const heddle_slot*>(kSlots);
    copy.unit.slot_count = slots_.size();
    copy.unit.catalog_size = catalog.size();
    copy.unit.layout_size = layout_.blob().size();
    copy.unit.symbol_count = own_.symbols.size();
    copy.unit.site_flags = reinterpret_cast<std::uint8_t*>(kFlags);
    copy.unit.site_count = own_.sites.size();
    copy.name_size = name.size();
    std::vector<std::uint8_t> bytes;
    const auto put = [&bytes](const void* data, std::size_t size) {
      const auto* from = static_cast<const std::uint8_t*>(data);
      bytes.insert(bytes.end(), from, from + size);
      bytes.resize((bytes.size() + 7) / 8 * 8);
    };
    const std::vector<std::uint64_t> symbols(own_.symbols.size(), kSymbol);
    put(&copy, sizeof copy);
    put(slots_.data(), slots_.size() * sizeof(heddle_slot));
    put(catalog.data(), catalog.size());
    put(layout_.blob().data(), layout_.blob().size());
    put(symbols.data(), symbols.size() * sizeof(std::uint64_t));
    put(name.data(), name.size());
    return bytes;
  }

  Decoder& decoder(bool flow = false) {
    side_ = unit_copy();
    decoder_ = std::make_unique<Decoder>(
        catalog_, flow, [this](std::uint64_t offset, std::uint64_t length) {
          return offset + length <= side_.size()
                     ? std::vector<std::uint8_t>(side_.begin() + static_cast<long>(offset),
                                                 side_.begin() + static_cast<long>(offset + length))
                     : std::vector<std::uint8_t>();
        });
    return *decoder_;
  }

  // The record that announces the unit, then `words`.
  std::vector<std::uint64_t> after_unit(std::vector<std::uint64_t> words) const {
    std::vector<std::uint64_t> all = {HEDDLE_HEADER(HEDDLE_REC_UNIT, 0, 3, 0, 0, 0), kUnit, 0,
                                      unit_copy().size()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  std::vector<Event> decode(std::vector<std::uint64_t> words, Tail tail = Tail::kWhole,
                            bool flow = false) {
    std::vector<Event> out;
    Status status = decode_all(decoder(flow), after_unit(std::move(words)), tail, out);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    return out;
  }

  // Through the filter passes the same from the records and from their events. `passed`: from the
  // records; returns how many events these stand for.
  std::size_t filter_both_ways(const std::vector<std::uint64_t>& words, Taken& passed) {
    catalog_ = {};
    const std::vector<Event> events = decode(words);
    const auto filter = shared_filter(passed);
    catalog_ = {};
    EXPECT_TRUE(filter_all(decoder(), after_unit(words), *filter).ok());
    Taken from_events;
    const auto after = shared_filter(from_events);
    after->on(events, 0);
    EXPECT_EQ(by_thread(without_empty_calls(passed.events)),
              by_thread(without_empty_calls(from_events.events)));
    EXPECT_EQ(by_granule(passed.events), by_granule(from_events.events));
    EXPECT_EQ(filter->accesses(), after->accesses());
    return events.size();
  }

  static LayoutItem word() { return {}; }
  static LayoutItem symbol(std::int64_t offset) {
    LayoutItem item;
    item.source = LayoutItem::Source::kSymbol;
    item.offset = offset;
    return item;
  }
  static LayoutItem from_item(std::uint32_t item, std::int64_t offset) {
    LayoutItem result;
    result.source = LayoutItem::Source::kItem;
    result.reference = item;
    result.offset = offset;
    return result;
  }

  Catalog own_;
  LayoutEncoder layout_;
  std::vector<heddle_slot> slots_;
  std::vector<std::uint8_t> side_;
  Catalog catalog_;
  std::unique_ptr<Decoder> decoder_;
};

inline std::uint64_t switch_to(ThreadId thread) {
  return HEDDLE_HEADER(HEDDLE_REC_SWITCH, 0, 0, 0, 0, thread);
}

inline std::string brief(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) {
    const char* name = event.kind == EventKind::kRead      ? "r"
                       : event.kind == EventKind::kWrite   ? "w"
                       : event.kind == EventKind::kRmw     ? "u"
                       : event.kind == EventKind::kSegment ? "seg"
                       : event.kind == EventKind::kEnter   ? "enter"
                       : event.kind == EventKind::kLeave   ? "leave"
                       : event.kind == EventKind::kFence   ? "fence"
                                                           : "?";
    char line[64];
    std::snprintf(line, sizeof line, "%s%u:%s(%llx,%u)", text.empty() ? "" : " ", event.thread,
                  name, static_cast<unsigned long long>(event.address), unsigned{event.size});
    text += line;
  }
  return text;
}

}  // namespace heddle::collect
