#include "trace/writer.h"

#include "trace/checksum.h"
#include "trace/memory.h"
#include "trace/reader.h"
#include "trace/temp_file.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace heddle {
namespace {

using testing::TempDir;

std::vector<Event> accesses(std::size_t count) {
  std::vector<Event> events(count);
  std::uint64_t x = 1;
  for (Event& event : events) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    event.kind = EventKind::kRead;
    event.size = 8;
    event.address = x >> 16;
  }
  return events;
}

TEST(Checksum, IsXxh64) {
  const auto of = [](std::string_view text) {
    return checksum64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), 0xef46db3751d8e999u);
  EXPECT_EQ(of("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(of("abc"), 0x44bc2cf5ad770999u);
}

TEST(TraceWriter, AnEmptyTraceIsATrace) {
  const TempDir dir;
  Catalog catalog;
  auto writer = TraceWriter::create(dir.file("t"), catalog);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->finish().ok());
  auto source = open_trace(dir.file("t"));
  ASSERT_TRUE(source.ok());
  const auto batch = (*source)->next();
  ASSERT_TRUE(batch.ok());
  EXPECT_TRUE(batch->empty());
}

TEST(TraceWriter, FilesAreTheOwnersOnly) {
  const TempDir dir;
  testing::write_bytes(dir.file("t"), {});
  ASSERT_EQ(::chmod(dir.file("t").c_str(), 0644), 0);
  Catalog catalog;
  for (const char* name : {"t", "fresh"}) {
    ASSERT_TRUE(TraceWriter::create(dir.file(name), catalog).ok());
    struct stat facts = {};
    ASSERT_EQ(::stat(dir.file(name).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u) << name;
  }
}

TEST(TraceWriter, WhatCannotBeCreatedIsSaidInOneLine) {
  const TempDir dir;
  Catalog catalog;
  const auto message = [&](const std::string& path) {
    const auto writer = TraceWriter::create(path, catalog);
    return writer.ok() ? std::string("created") : writer.error().message;
  };
  EXPECT_EQ(message(dir.file("no/t")),
            dir.file("no/t") + ": cannot create: No such file or directory");
  EXPECT_EQ(message(dir.file("")), dir.file("") + ": cannot create: Is a directory");
  ASSERT_EQ(::mkfifo(dir.file("fifo").c_str(), 0600), 0);
  EXPECT_NE(message(dir.file("fifo")), "created");
  EXPECT_EQ(message("/dev/null"), "/dev/null: is a device, cannot hold a trace");
}

TEST(TraceWriter, EventsThatReferToNothingAreRefused) {
  const TempDir dir;
  const auto message = [&](const Event& event) {
    Catalog catalog;
    auto writer = TraceWriter::create(dir.file("t"), catalog);
    const Status status = (*writer)->add({&event, 1});
    return status.ok() ? std::string("taken") : status.error().message.substr(dir.file("t").size());
  };
  Event event;
  event.kind = EventKind::kRead;
  event.site = 1;
  EXPECT_EQ(message(event),
            ": cannot write event 0: it refers to a site that is not in the catalog");
  event = {};
  event.kind = EventKind::kEnter;
  event.value = 1;
  EXPECT_EQ(message(event),
            ": cannot write event 0: it refers to a function that is not in the catalog");
  event = {};
  EXPECT_EQ(message(event),
            ": cannot write event 0: it refers to a kind of event that does not exist");
}

TEST(TraceWriter, RunsMustAscendAndBeOfOneThread) {
  const TempDir dir;
  Catalog catalog;
  std::vector<Event> events = accesses(2);
  auto writer = TraceWriter::create(dir.file("t"), catalog);
  ASSERT_TRUE((*writer)->add_run(5, events).ok());
  EXPECT_FALSE((*writer)->add_run(5, events).ok());
  writer = TraceWriter::create(dir.file("t"), catalog);
  events[1].thread = 1;
  EXPECT_FALSE((*writer)->add_run(5, events).ok());
}

// A full disk: the size limit of the process stands in for it. What was on disk before is delivered
// by salvage.
TEST(TraceWriter, AFullDiskIsAnErrorAndTheFileStaysReadable) {
  const TempDir dir;
  const std::vector<Event> events = accesses(1'000'000);
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 3'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Catalog catalog;
  auto writer = TraceWriter::create(dir.file("t"), catalog);
  const Status status = (*writer)->add(events);
  const Status again = (*writer)->finish();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, dir.file("t") + ": cannot write: File too large");
  EXPECT_FALSE(again.ok());
  writer->reset();

  auto source = open_trace(dir.file("t"));
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_FALSE(read_all(**source).ok());

  source = open_trace(dir.file("t"), {.salvage = true});
  ASSERT_TRUE(source.ok());
  const Result<Trace> trace = read_all(**source);
  ASSERT_TRUE(trace.ok());
  EXPECT_GT(trace->events.size(), 100'000u);
  EXPECT_TRUE(std::equal(trace->events.begin(), trace->events.end(), events.begin()));
  EXPECT_NE((*source)->warning().find("interrupted here"), std::string::npos);
}

// What a process that died leaves: everything up to the last flush.
TEST(TraceWriter, WhatWasFlushedSurvives) {
  const TempDir dir;
  Catalog catalog;
  const std::vector<Event> events = accesses(1000);
  auto writer = TraceWriter::create(dir.file("t"), catalog);
  ASSERT_TRUE((*writer)->add(std::span(events).first(600)).ok());
  ASSERT_TRUE((*writer)->flush().ok());
  ASSERT_TRUE((*writer)->add(std::span(events).subspan(600)).ok());
  writer->reset();  // without finish()
  auto source = open_trace(dir.file("t"), {.salvage = true});
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(read_all(**source)->events.size(), 600u);
}

}  // namespace
}  // namespace heddle
