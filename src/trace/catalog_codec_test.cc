#include "trace/catalog_codec.h"

#include "trace/catalog_merge.h"
#include "trace/random_trace.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::RandomTrace;
using testing::same_catalog;

TEST(Bytes, VarintsOfEveryLengthComeBack) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    const std::uint64_t top = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
    for (const std::uint64_t value : {top, top - 1, top | 1}) {
      ByteWriter out;
      out.varint(value);
      EXPECT_EQ(out.size(), varint_size(value));
      ByteReader in(out.bytes());
      EXPECT_EQ(in.varint(), value);
      EXPECT_TRUE(in.ok() && in.at_end());
      EXPECT_EQ(unzigzag(zigzag(value)), value);
      ByteReader cut(std::span(out.bytes()).first(out.size() - 1));
      cut.varint();
      EXPECT_FALSE(cut.ok());
    }
  }
}

TEST(Catalog, ACopyOwnsItsTexts) {
  Catalog copy;
  {
    Catalog original;
    original.strings.intern("a text that is long enough to live on the heap");
    copy = original;
  }
  EXPECT_EQ(copy.text(1), "a text that is long enough to live on the heap");
}

TEST(CatalogCodec, RandomCatalogsComeBackWholeAndInPieces) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTrace random(seed);
    Catalog catalog;
    Catalog decoded;
    CatalogMark mark;
    for (int step = 0; step < 4; ++step) {
      random.grow(catalog, 12);
      const std::size_t limit = random.one_in(2) ? 1 + random.below(200) : 1u << 20;
      while (!mark.covers(catalog)) {
        ByteWriter out;
        encode_catalog_since(catalog, mark, limit, out);
        const Status status = decode_catalog(out.bytes(), decoded);
        ASSERT_TRUE(status.ok()) << status.error().message;
      }
      ASSERT_TRUE(same_catalog(catalog, decoded));
    }
    Catalog whole;
    ASSERT_TRUE(decode_catalog(encode_catalog(catalog), whole).ok());
    ASSERT_TRUE(same_catalog(catalog, whole));
  }
}

TEST(CatalogCodec, NoDamageMakesAnInconsistentCatalog) {
  RandomTrace random(7);
  Catalog catalog;
  random.grow(catalog, 12);
  const std::vector<std::uint8_t> blob = encode_catalog(catalog);
  const auto check = [](std::span<const std::uint8_t> bytes) {
    Catalog decoded;
    (void)decode_catalog(bytes, decoded);
    for (const Function& f : decoded.functions) ASSERT_LT(f.name, decoded.strings.size());
    for (const Site& s : decoded.sites) ASSERT_LT(s.function, decoded.functions.size());
    for (const Segment& s : decoded.segments) {
      for (const AccessItem& item : s.items) ASSERT_LT(item.site, decoded.sites.size());
    }
  };
  for (std::size_t size = 0; size < blob.size(); ++size) check(std::span(blob).first(size));
  std::vector<std::uint8_t> flipped = blob;
  for (std::size_t at = 0; at < blob.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      flipped[at] = static_cast<std::uint8_t>(blob[at] ^ (1 << bit));
      check(flipped);
    }
    flipped[at] = blob[at];
  }
}

TEST(CatalogCodec, ErrorsSayWhere) {
  Catalog catalog;
  Site site;
  site.function = 5;
  catalog.sites.push_back(site);
  Catalog into;
  const Status status = decode_catalog(encode_catalog(catalog), into);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "catalog: a function that does not exist at byte 5");
}

TEST(CatalogCodec, SectionsOfALaterVersionAreSkipped) {
  Catalog catalog;
  catalog.strings.intern("one");
  ByteWriter out;
  out.raw(encode_catalog(catalog));
  out.byte(200);
  out.varint(3);
  out.varint(0);
  out.varint(1);
  out.raw(std::vector<std::uint8_t>{1, 2, 3});
  Catalog into;
  ASSERT_TRUE(decode_catalog(out.bytes(), into).ok());
  EXPECT_TRUE(same_catalog(catalog, into));
}

// Two units with a header in common: the header's function is one, the others are not.
TEST(CatalogMerge, EqualEntriesBecomeOne) {
  const auto unit = [](const char* own, Address symbol) {
    Catalog c;
    c.strings.intern(own);
    const StringId header = c.strings.intern("header.h");
    for (const StringId file : {header, c.strings.intern(own)}) {
      Function f;
      f.file = file;
      f.key = 9;
      c.functions.push_back(f);
      const auto function = static_cast<FunctionId>(c.functions.size() - 1);
      Site s;
      s.function = function;
      s.kind = EventKind::kRead;
      s.key = 11;
      c.sites.push_back(s);
      Segment segment;
      segment.function = function;
      segment.items.push_back({static_cast<SiteId>(c.sites.size() - 1), 0, {}, {}});
      c.segments.push_back(segment);
    }
    c.symbols.push_back({header, header, 1, symbol, 4});
    return c;
  };
  Catalog into;
  CatalogMerger merger(into);
  const CatalogRemap a = merger.add(unit("a.cc", 0x1000));
  const CatalogRemap b = merger.add(unit("b.cc", 0x1000));
  const CatalogRemap c = merger.add(unit("c.cc", 0x2000));
  EXPECT_EQ(a.functions[1], b.functions[1]);
  EXPECT_EQ(a.sites[1], b.sites[1]);
  EXPECT_EQ(a.segments[1], b.segments[1]);
  EXPECT_NE(a.functions[2], b.functions[2]);
  EXPECT_NE(a.sites[2], b.sites[2]);
  EXPECT_NE(a.segments[2], b.segments[2]);
  EXPECT_EQ(a.symbols[0], b.symbols[0]);
  EXPECT_NE(a.symbols[0], c.symbols[0]);
  EXPECT_EQ(into.functions.size(), 1u + 4u);
  EXPECT_EQ(into.text(into.function(b.functions[2]).file), "b.cc");
  EXPECT_EQ(into.segment(c.segments[2]).items[0].site, c.sites[2]);
}

TEST(CatalogMerge, EveryEntryKeepsItsMeaning) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTrace random(seed);
    Catalog into;
    random.grow(into, 10);
    CatalogMerger merger(into);
    for (int n = 0; n < 3; ++n) {
      Catalog unit;
      random.grow(unit, 10);
      const CatalogRemap map = merger.add(unit);
      ASSERT_EQ(map.sites.size(), unit.sites.size());
      for (std::size_t id = 0; id < unit.sites.size(); ++id) {
        const Site& before = unit.sites[id];
        const Site& after = into.sites[map.sites[id]];
        EXPECT_EQ(after.key, before.key);
        EXPECT_EQ(into.text(after.variable), unit.text(before.variable));
        EXPECT_EQ(after.function, map.functions[before.function]);
      }
      for (std::size_t id = 0; id < unit.segments.size(); ++id) {
        EXPECT_EQ(into.segments[map.segments[id]].items.size(), unit.segments[id].items.size());
      }
    }
  }
}

TEST(MemorySource, DeliversInBatches) {
  Trace trace;
  trace.events.resize(10);
  for (std::uint64_t i = 0; i < 10; ++i) trace.events[i].value = i;
  MemorySource source(trace, 4);
  EXPECT_EQ(source.next()->size(), 4u);
  EXPECT_DOUBLE_EQ(source.fraction(), 0.4);
  MemorySource again(trace, 3);
  EXPECT_EQ(read_all(again)->events, trace.events);
}

}  // namespace
}  // namespace heddle
