// The worked example of docs/trace-format.md: traces of format 1.0 stay readable, and writing the
// same trace gives the same bytes.
#include "trace/chunk_encoder.h"
#include "trace/memory.h"
#include "trace/random_trace.h"
#include "trace/reader.h"
#include "trace/temp_file.h"
#include "trace/writer.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

Trace example() {
  Trace trace;
  Catalog& catalog = trace.catalog;
  Site site;
  site.file = catalog.strings.intern("a.c");
  site.line = 3;
  site.column = 7;
  site.kind = EventKind::kRead;
  site.size = 4;
  site.variable = catalog.strings.intern("x");
  site.key = 0x1122334455667788;
  catalog.sites.push_back(site);
  catalog.threads.push_back({catalog.strings.intern("main")});
  const auto access = [&](ThreadId thread, EventKind kind, SiteId at, Address address) {
    Event& event = trace.events.emplace_back();
    event.kind = kind;
    event.thread = thread;
    event.site = at;
    event.size = 4;
    event.address = address;
  };
  for (Address address = 0x1000; address <= 0x1010; address += 4) {
    access(0, EventKind::kRead, 1, address);
  }
  access(1, EventKind::kWrite, 0, 0x1004);
  access(0, EventKind::kRead, 1, 0x1014);
  return trace;
}

const std::string kExample = std::string(HEDDLE_TEST_DATA) + "/trace-1.0.heddle";

TEST(Format, TheExampleIsReadable) {
  auto source = open_trace(kExample);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const Result<Trace> trace = read_all(**source);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->events, example().events);
  EXPECT_TRUE(testing::same_catalog(trace->catalog, example().catalog));
}

TEST(Format, TheExampleIsWhatTheWriterWrites) {
  const testing::TempDir dir;
  const Trace trace = example();
  auto writer = TraceWriter::create(dir.file("t"), trace.catalog);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->add(trace.events).ok());
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_EQ(testing::bytes_of(dir.file("t")), testing::bytes_of(kExample));
}

// A segment with a read and a write of neighbours, executed three times and interrupted once by
// another thread.
TEST(Format, SegmentsDefineTheirAccesses) {
  Catalog catalog;
  Segment segment;
  for (const EventKind kind : {EventKind::kRead, EventKind::kWrite}) {
    Site site;
    site.kind = kind;
    site.size = 4;
    catalog.sites.push_back(site);
    segment.items.push_back({static_cast<SiteId>(catalog.sites.size() - 1), kNoRegister, {}, {}});
  }
  catalog.segments.push_back(segment);
  std::vector<Event> events;
  const auto add = [&](ThreadId thread, EventKind kind, SiteId site, Address address) -> Event& {
    Event& event = events.emplace_back();
    event.kind = kind;
    event.thread = thread;
    event.site = site;
    event.address = address;
    if (is_access(kind)) event.size = 4;
    return event;
  };
  for (Address address = 8; address <= 24; address += 8) {
    add(0, EventKind::kSegment, 0, 0).value = 1;
    add(0, EventKind::kRead, 1, address);
    if (address == 24) add(1, EventKind::kFence, 0, 0);
    add(0, EventKind::kWrite, 2, address + 4);
  }
  ChunkEncoder encoder(catalog);
  std::span<const Event> rest = events;
  ASSERT_EQ(encoder.add(rest), nullptr);
  std::vector<std::uint8_t> payload;
  encoder.finish(payload);
  const std::vector<std::uint8_t> expected = {
      0x0b, 0x1b, 0x03, 0x09, 0x01, 0x17,  // 5 streams
      0xf1, 0xf3, 0x00,                    // thread 0; shapes of the segment and its items; Segment
      0x08, 0x10,                          // Read last + 8, Write previous + 4
      0x80, 0x28, 0x22,                    // Segment by name, Read 2nd last + 8, Write last + 4, …
      0xf1, 0xf3, 0x00,                    // … Segment, Read; thread 1: Fence
      0xc0, 0x00,                          // thread 0 goes on: Write
      0x03,                                // indices
      0x21, 0x11, 0x21, 0x11,              // addresses
      0x01, 0x3c, 0x08, 0x01, 0x01, 0x03,  // definitions: thread 0, Segment 1
      0x03, 0x04, 0x00, 0x01, 0x01,        // thread 1, Fence
  };
  EXPECT_EQ(payload, expected);
}

}  // namespace
}  // namespace heddle
