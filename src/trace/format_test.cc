// The worked example of docs/trace-format.md: traces of format 1.0 stay readable, and writing the
// same trace gives the same bytes.
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

}  // namespace
}  // namespace heddle
