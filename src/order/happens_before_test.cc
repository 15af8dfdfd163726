#include "order/happens_before.h"

#include "order/order.h"
#include "order/random_run.h"
#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::EventMask;
using testing::random_run;
using testing::RunShape;

// before[j] by the engine, asked after every event about every earlier one.
std::vector<EventMask> happens_before(const std::vector<Event>& events, bool collect_always) {
  HappensBefore order;
  std::vector<Slot> slots;
  std::vector<EventMask> before(events.size());
  for (std::size_t j = 0; j < events.size(); ++j) {
    const Event& event = events[j];
    order.on(event, j);
    slots.push_back(order.slot(event.thread));
    for (std::size_t i = 0; i < j; ++i) {
      if (order.ordered(slots[i], time_of(i), event.thread)) before[j] |= EventMask{1} << i;
    }
    if (collect_always) {
      order.begin_collection();
      order.end_collection();
    }
  }
  return before;
}

void agrees_with_definition(const RunShape& shape, std::uint64_t seed) {
  const std::vector<Event> events = random_run(seed, shape);
  const std::vector<EventMask> expected = testing::happens_before_by_definition(events);
  const std::vector<EventMask> actual = happens_before(events, seed % 4 == 0);
  for (std::size_t j = 0; j < events.size(); ++j) {
    ASSERT_EQ(actual[j], expected[j]) << "seed " << seed << ", event " << j << "\n"
                                      << testing::to_string(events);
  }
}

TEST(HappensBeforeDefinition, LocksAndThreads) {
  RunShape shape;
  shape.threads = 7;
  shape.plain = 20;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(HappensBeforeDefinition, AtomicsAndFences) {
  RunShape shape;
  shape.fork_join = false;
  shape.locks = false;
  shape.atomics = true;
  shape.plain = 10;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(HappensBeforeDefinition, EverythingTogether) {
  RunShape shape;
  shape.atomics = shape.other_sync = true;
  shape.threads = 6;
  shape.plain = 15;
  shape.events = 40;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

// Is the last event of the trace ordered after its first?
bool first_before_last(const char* text) {
  const Trace trace = trace_from_text(text);
  return happens_before(trace.events, false).back() & 1;
}

TEST(HappensBefore, ARelaxedFlagOrdersNothing) {
  EXPECT_FALSE(first_before_last("t0: w x\nt0: w.relaxed f\nt1: r.relaxed f\nt1: r x\n"));
  EXPECT_TRUE(first_before_last("t0: w x\nt0: w.release f\nt1: r.acquire f\nt1: r x\n"));
}

TEST(HappensBefore, FencesMakeRelaxedAccessesSynchronise) {
  EXPECT_TRUE(
      first_before_last("t0: w x\nt0: fence.release\nt0: w.relaxed f\nt1: r.relaxed f\nt1: "
                        "fence.acquire\nt1: r x\n"));
  EXPECT_FALSE(
      first_before_last("t0: w x\nt0: fence.release\nt0: w.relaxed f\nt1: r.relaxed f\nt1: r x\n"));
  EXPECT_FALSE(
      first_before_last("t0: w x\nt0: w.relaxed f\nt1: r.relaxed f\nt1: fence.acquire\nt1: r x\n"));
  EXPECT_FALSE(
      first_before_last("t0: w x\nt0: w.relaxed f\nt0: fence.release\nt1: fence.acquire\nt1: "
                        "r.relaxed f\nt1: r x\n"));
}

TEST(HappensBefore, AReleaseSequenceGoesThroughReadModifyWritesOnly) {
  EXPECT_TRUE(
      first_before_last("t0: w x\nt0: w.release f\nt2: rmw.relaxed f\nt1: r.acquire f\nt1: r x\n"));
  EXPECT_FALSE(
      first_before_last("t0: w x\nt0: w.release f\nt2: w.relaxed f\nt1: r.acquire f\nt1: r x\n"));
  // C++20: a relaxed store of the releasing thread itself ends the sequence too.
  EXPECT_FALSE(
      first_before_last("t0: w x\nt0: w.release f\nt0: w.relaxed f\nt1: r.acquire f\nt1: r x\n"));
}

TEST(HappensBefore, HalvesOfAnAtomicAreParts) {
  EXPECT_TRUE(first_before_last("t0: w x\nt0: w.release f:8\nt1: r.acquire f+4:4\nt1: r x\n"));
  EXPECT_TRUE(first_before_last("t0: w x\nt0: w.release f+4:4\nt1: r.acquire f:8\nt1: r x\n"));
  EXPECT_FALSE(
      first_before_last("t2: r.acquire f:8\nt0: w.release f:4\nt1: r.acquire f+4:4\nt1: r x\n"));
}

TEST(HappensBefore, AnEarlierSignalDoesNotWakeALaterWaiter) {
  EXPECT_FALSE(first_before_last("t0: signal c\nt1: acq m\nt1: rel m\nt1: wait c m\n"));
  EXPECT_TRUE(first_before_last("t0: w x\nt1: acq m\nt1: rel m\nt0: signal c\nt1: wait c m\n"));
}

TEST(HappensBefore, ALockInFreedMemoryIsForgotten) {
  EXPECT_TRUE(first_before_last("t0: alloc h:40\nt0: rel h\nt1: acq h\n"));
  EXPECT_FALSE(first_before_last("t0: alloc h:40\nt0: rel h\nt2: free h\nt1: acq h\n"));
}

TEST(HappensBefore, SlotsOfJoinedThreadsAreUsedAgain) {
  HappensBefore order;
  EventOrdinal ordinal = 0;
  const auto event = [&](EventKind kind, ThreadId thread, std::uint64_t value) {
    Event e;
    e.kind = kind;
    e.thread = thread;
    e.value = value;
    order.on(e, ordinal++);
  };
  for (ThreadId child = 1; child < 1000; ++child) {
    event(EventKind::kFork, 0, child);
    event(EventKind::kThreadBegin, child, 0);
    event(EventKind::kThreadEnd, child, 0);
    event(EventKind::kJoin, 0, child);
  }
  EXPECT_EQ(order.slots(), 2u);
}

TEST(Order, AnswersWithoutClocks) {
  const Trace trace = trace_from_text("t0: acq m\nt0: w x\nt0: rel m\nt1: r x\nt1: acq m\n");
  Order order;
  Point write;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    order.on(trace.events[i], i);
    if (trace.events[i].kind == EventKind::kWrite) write = order.point(0, i);
    if (trace.events[i].kind == EventKind::kRead) {
      EXPECT_FALSE(order.ordered(write, 1));
    }
  }
  EXPECT_TRUE(order.ordered(write, 1));
  EXPECT_EQ(write.ordinal(), 1u);
  EXPECT_EQ(order.locks_held().locks(write.locks).size(), 1u);
  EXPECT_EQ(order.locks(0), 0u);
}

}  // namespace
}  // namespace heddle
