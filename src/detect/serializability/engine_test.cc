#include "detect/serializability/engine.h"

#include "detect/serializability/twin.h"
#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle::serializability {
namespace {

using testing::RunShape;

class Recorder final : public ViolationSink {
 public:
  bool wants(const Edge&) override { return true; }
  void on_violation(const Violation& violation) override {
    cycles.emplace_back(violation.cycle.begin(), violation.cycle.end());
  }
  std::vector<std::vector<Edge>> cycles;
};

std::vector<std::vector<Edge>> cycles_of(const std::vector<Event>& events,
                                         std::size_t sweep_at = 64) {
  Recorder out;
  CallStacks stacks;
  LocksHeld locks;
  Engine engine(out, stacks, locks, sweep_at);
  for (std::size_t i = 0; i < events.size(); ++i) {
    locks.on(events[i]);
    engine.on(events[i], i);
  }
  return std::move(out.cycles);
}

std::vector<std::vector<Edge>> cycles_of(const char* text) {
  return cycles_of(trace_from_text(text).events);
}

// Every edge must be an order between two events of the trace; from the target of one to the source
// of the next it must be program order (or the join and fork of a thread that ended in between).
void check_witness(const std::vector<Event>& events, const ConflictGraph& graph,
                   const std::vector<Edge>& cycle) {
  const std::size_t closing = ordinal_of(cycle.back().target.time);
  const int home = graph.transaction[closing];
  ASSERT_EQ(graph.transaction[ordinal_of(cycle.front().source.time)], home);
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    const std::size_t source = ordinal_of(cycle[k].source.time);
    const std::size_t target = ordinal_of(cycle[k].target.time);
    if (cycle[k].kind == EdgeKind::kFork) {
      ASSERT_EQ(source, target);  // the child's beginning
      ASSERT_EQ(events[source].kind, EventKind::kFork);
    } else {
      ASSERT_LT(source, target);
      ASSERT_NE(events[source].thread, events[target].thread);
      ASSERT_TRUE(ordered_directly(events[source], events[target]));
      if (cycle[k].kind == EdgeKind::kVariable) {
        ASSERT_TRUE(touches(events[source], cycle[k].object));
        ASSERT_TRUE(touches(events[target], cycle[k].object));
      }
    }
    if (k + 1 == cycle.size()) break;
    const std::size_t next = ordinal_of(cycle[k + 1].source.time);
    const ThreadId arrived = cycle[k].kind == EdgeKind::kFork
                                 ? static_cast<ThreadId>(events[source].value)
                                 : events[target].thread;
    if (events[next].thread == arrived) {
      // Later in that thread, or earlier in the same transaction.
      ASSERT_TRUE(next >= target || graph.transaction[next] == graph.transaction[target]);
    } else {
      ASSERT_TRUE(reaches(graph, graph.transaction[target], graph.transaction[next]));
    }
  }
}

void agrees_with_definition(const RunShape& shape, std::uint64_t seed) {
  const std::vector<Event> events = testing::random_run(seed, shape);
  const ConflictGraph graph = graph_by_definition(events);
  std::set<std::size_t> closing;
  for (const std::vector<Edge>& cycle : cycles_of(events, seed % 2 == 0 ? 64 : 0)) {
    closing.insert(ordinal_of(cycle.back().target.time));
    ASSERT_NO_FATAL_FAILURE(check_witness(events, graph, cycle)) << "seed " << seed << "\n"
                                                                 << testing::to_string(events);
  }
  ASSERT_EQ(closing, graph.closing) << "seed " << seed << "\n" << testing::to_string(events);
}

TEST(SerializabilityDefinition, LocksThreadsAndNestedUnits) {
  RunShape shape;
  shape.units = true;
  shape.threads = 5;
  shape.plain = 45;
  for (std::uint64_t seed = 0; seed < 60'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(SerializabilityDefinition, LongUnitsOfFewThreads) {
  RunShape shape;
  shape.units = true;
  shape.fork_join = shape.locks = false;
  shape.threads = 4;
  shape.variables = 5;
  shape.events = 50;
  shape.plain = 70;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(SerializabilityDefinition, BytesOfAllSizes) {
  RunShape shape;
  shape.units = shape.overlapping = true;
  shape.fork_join = false;
  shape.threads = 3;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(SerializabilityEngine, ASplitReadModifyWriteIsACycle) {
  const auto cycles = cycles_of("t1: begin\nt1: r x\nt2: w x\nt1: w x\nt1: end\n");
  ASSERT_EQ(cycles.size(), 1u);
  ASSERT_EQ(cycles[0].size(), 2u);
  EXPECT_EQ(ordinal_of(cycles[0][0].source.time), 1u);
  EXPECT_EQ(ordinal_of(cycles[0][0].target.time), 2u);
  EXPECT_EQ(ordinal_of(cycles[0][1].target.time), 3u);
}

TEST(SerializabilityEngine, OrderFromBeforeABeginCounts) {
  // t1's unit → t2's first access → (program order) t2's unit → t1's unit.
  EXPECT_EQ(cycles_of("t1: begin\nt1: w x\nt2: r x\nt2: begin\nt2: w y\nt2: end\nt1: r y\n").size(),
            1u);
}

TEST(SerializabilityEngine, AJoinInTheUnitOfTheForkCloses) {
  EXPECT_EQ(cycles_of("t0: begin\nt0: fork t1\nt1: w x\nt0: join t1\nt0: end\n").size(), 1u);
  EXPECT_TRUE(cycles_of("t0: begin\nt0: fork t1\nt0: end\nt1: w x\nt0: join t1\n").empty());
}

TEST(SerializabilityEngine, ALockHeldThroughoutSerialises) {
  EXPECT_TRUE(cycles_of("t1: begin\nt1: acq m\nt1: r x\nt1: w x\nt1: rel m\nt1: end\n"
                        "t2: begin\nt2: acq m\nt2: r x\nt2: w x\nt2: rel m\nt2: end\n")
                  .empty());
  // Let go of in between: the lock's own order closes the cycle.
  EXPECT_EQ(cycles_of("t1: begin\nt1: acq m\nt1: rel m\nt2: acq m\nt2: rel m\nt1: acq m\n").size(),
            1u);
}

TEST(SerializabilityEngine, AllViolationsAreFound) {
  EXPECT_EQ(cycles_of("t1: begin\nt1: r x\nt1: r y\nt2: w x\nt2: w y\nt1: w x\nt1: w y\n").size(),
            2u);
}

}  // namespace
}  // namespace heddle::serializability
