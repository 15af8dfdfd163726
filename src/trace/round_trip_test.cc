// What is written is read: random events, catalogs that grow, flushes, runs of parallel threads.
#include "trace/random_trace.h"
#include "trace/reader.h"
#include "trace/temp_file.h"
#include "trace/writer.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::RandomTrace;
using testing::same_catalog;
using testing::TempDir;

std::string difference(const std::vector<Event>& expected, const std::vector<Event>& got) {
  for (std::size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
    if (!(expected[i] == got[i])) return "event " + std::to_string(i) + " differs";
  }
  if (expected.size() == got.size()) return "";
  return std::to_string(got.size()) + " events instead of " + std::to_string(expected.size());
}

void expect_reads(const std::string& path, const std::vector<Event>& events,
                  const Catalog& catalog) {
  auto source = open_trace(path);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const Result<Trace> trace = read_all(**source);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(difference(events, trace->events), "");
  ASSERT_TRUE(same_catalog(catalog, trace->catalog));
}

TEST(RoundTrip, RandomEventsWithAGrowingCatalog) {
  const TempDir dir;
  const std::string path = dir.file("t.heddle");
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTrace random(seed);
    Catalog catalog;
    auto writer = TraceWriter::create(path, catalog);
    ASSERT_TRUE(writer.ok());
    std::vector<Event> all;
    const auto threads = static_cast<ThreadId>(1 + random.below(random.one_in(4) ? 80 : 5));
    for (std::uint64_t step = random.below(5); step > 0; --step) {
      random.grow(catalog, 1 + random.below(20));
      const std::vector<Event> events = random.events(catalog, random.below(3000), threads);
      ASSERT_TRUE((*writer)->add(events).ok());
      all.insert(all.end(), events.begin(), events.end());
      if (random.one_in(3)) {
        ASSERT_TRUE((*writer)->flush().ok());
      }
    }
    random.grow(catalog, 3);
    const Status status = (*writer)->finish();
    ASSERT_TRUE(status.ok()) << status.error().message;
    expect_reads(path, all, catalog);
  }
}

TEST(RoundTrip, ManyChunks) {
  const TempDir dir;
  const std::string path = dir.file("t.heddle");
  RandomTrace random(1);
  Catalog catalog;
  random.grow(catalog, 200);
  random.grow(catalog, 200);
  auto writer = TraceWriter::create(path, catalog);
  ASSERT_TRUE(writer.ok());
  const std::vector<Event> events = random.events(catalog, 600'000, 4);
  ASSERT_TRUE((*writer)->add(events).ok());
  ASSERT_TRUE((*writer)->finish().ok());
  auto file = InputFile::open(path);
  ASSERT_TRUE(file.ok());
  auto reader = TraceReader::open(*std::move(file));
  ASSERT_TRUE(reader.ok());
  EXPECT_GE((*reader)->facts().event_chunks, 3u);
  EXPECT_TRUE((*reader)->facts().complete);
  EXPECT_EQ((*reader)->facts().events, events.size());
  expect_reads(path, events, catalog);
}

// Threads that were recorded in parallel: runs arrive in the order in which each thread hands them
// over, and are read in the order of their stamps.
TEST(RoundTrip, RunsOfParallelThreadsAreReadByStamp) {
  const TempDir dir;
  const std::string path = dir.file("t.heddle");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTrace random(seed);
    Catalog catalog;
    random.grow(catalog, 20);
    struct Run {
      std::uint64_t stamp;
      std::vector<Event> events;
    };
    const auto threads = static_cast<ThreadId>(1 + random.below(6));
    std::vector<std::vector<Run>> runs(threads);
    std::vector<Event> expected;
    std::uint64_t stamp = random.below(3);
    for (std::uint64_t n = random.below(200); n > 0; --n) {
      const auto thread = static_cast<ThreadId>(random.below(threads));
      std::vector<Event> events = random.events(catalog, random.below(40), 1);
      for (Event& event : events) event.thread = thread;
      expected.insert(expected.end(), events.begin(), events.end());
      runs[thread].push_back({stamp, std::move(events)});
      stamp += 1 + (random.one_in(3) ? random.any32() : 0);
    }
    auto writer = TraceWriter::create(path, catalog);
    ASSERT_TRUE(writer.ok());
    std::vector<std::size_t> at(threads, 0);
    while (true) {
      std::vector<ThreadId> left;
      for (ThreadId thread = 0; thread < threads; ++thread) {
        if (at[thread] < runs[thread].size()) left.push_back(thread);
      }
      if (left.empty()) break;
      const ThreadId thread = left[random.below(left.size())];
      for (std::uint64_t n = 1 + random.below(10); n > 0 && at[thread] < runs[thread].size(); --n) {
        const Run& run = runs[thread][at[thread]++];
        const Status status = (*writer)->add_run(run.stamp, run.events);
        ASSERT_TRUE(status.ok()) << status.error().message;
      }
      if (random.one_in(20)) {
        ASSERT_TRUE((*writer)->flush().ok());
      }
    }
    // A total order goes on behind it.
    const std::vector<Event> after = random.events(catalog, 100, threads);
    ASSERT_TRUE((*writer)->add(after).ok());
    expected.insert(expected.end(), after.begin(), after.end());
    ASSERT_TRUE((*writer)->finish().ok());
    expect_reads(path, expected, catalog);
  }
}

// Where stamps are equal, the file's order decides.
TEST(RoundTrip, RunsWithEqualStampsKeepTheOrderOfTheirChunks) {
  const TempDir dir;
  const std::string path = dir.file("t.heddle");
  Catalog catalog;
  const auto run = [](ThreadId thread, Address address) {
    std::vector<Event> events(2);
    for (Event& event : events) {
      event.kind = EventKind::kRead;
      event.thread = thread;
      event.address = address++;
    }
    return events;
  };
  auto writer = TraceWriter::create(path, catalog);
  ASSERT_TRUE(writer.ok());
  for (const ThreadId thread : {1u, 0u, 2u}) {
    for (std::uint64_t stamp = 1; stamp < 4; ++stamp) {
      ASSERT_TRUE((*writer)->add_run(stamp, run(thread, 16 * stamp)).ok());
    }
    ASSERT_TRUE((*writer)->flush().ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  std::vector<Event> expected;
  for (std::uint64_t stamp = 1; stamp < 4; ++stamp) {
    for (const ThreadId thread : {1u, 0u, 2u}) {
      const std::vector<Event> events = run(thread, 16 * stamp);
      expected.insert(expected.end(), events.begin(), events.end());
    }
  }
  expect_reads(path, expected, catalog);
}

// Long runs of parallel threads fill several chunks that overlap.
TEST(RoundTrip, RunsLongerThanAChunk) {
  const TempDir dir;
  const std::string path = dir.file("t.heddle");
  RandomTrace random(3);
  Catalog catalog;
  random.grow(catalog, 50);
  auto writer = TraceWriter::create(path, catalog);
  ASSERT_TRUE(writer.ok());
  std::vector<std::vector<Event>> by_stamp(30);
  for (const ThreadId thread : {2u, 0u, 1u}) {
    for (std::uint64_t stamp = thread; stamp < by_stamp.size(); stamp += 3) {
      by_stamp[stamp] = random.events(catalog, stamp < 6 ? 250'000 : 100, 1);
      for (Event& event : by_stamp[stamp]) event.thread = thread;
      ASSERT_TRUE((*writer)->add_run(stamp, by_stamp[stamp]).ok());
    }
  }
  ASSERT_TRUE((*writer)->finish().ok());
  std::vector<Event> expected;
  for (const auto& events : by_stamp) expected.insert(expected.end(), events.begin(), events.end());
  expect_reads(path, expected, catalog);
}

}  // namespace
}  // namespace heddle
