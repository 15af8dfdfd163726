// FlowMachine against the interpreter; offline SVD against the definitions.
#include "detect/svd/offline.h"

#include "detect/svd/definitions.h"
#include "detect/svd/random_program.h"
#include "detect/svd/serializable.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr std::uint64_t kPrograms = 50'000;

RandomProgramOptions options_for(std::uint64_t seed) {
  RandomProgramOptions options;
  options.threads = 2 + static_cast<int>(seed % 2);
  options.statements = 4 + static_cast<int>(seed % 7);
  options.shared_variables = 1 + static_cast<int>(seed % 3);
  options.plain = seed % 4 == 0;
  return options;
}

TEST(Flow, TheMachineSeesTheDependencesThatTheInterpreterSaw) {
  std::size_t addresses = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = run_random_program(seed, options_for(seed));
    FlowGraph graph(run.catalog);
    graph.on(run.events, 0);
    ASSERT_EQ(graph.nodes().size(), run.truth.size()) << "seed " << seed;
    for (NodeId id = 0; id < run.truth.size(); ++id) {
      const FlowNode& seen = graph.nodes()[id];
      const FlowNode& truth = run.truth[id];
      ASSERT_EQ(seen.kind, truth.kind) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.thread, truth.thread) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.segment, truth.segment) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.data, truth.data) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.address_of, truth.address_of) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.memory, truth.memory) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.control, truth.control) << "seed " << seed << " node " << id;
      addresses += truth.address_of.size();
    }
  }
  EXPECT_GT(addresses, kPrograms);
}

TEST(Offline, EqualsTheDefinitions) {
  std::size_t units = 0;
  std::size_t conflicts = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = run_random_program(seed, options_for(seed));
    const OfflineResult result = offline(run.truth);
    const Definitions definitions(run.truth);
    for (const OfflineUnit& unit : result.units) {
      const std::set<NodeId> expected = definitions.unit_of(unit.members.front());
      ASSERT_EQ(std::set<NodeId>(unit.members.begin(), unit.members.end()), expected)
          << "seed " << seed;
    }
    ASSERT_EQ(result.conflicts, definitions.conflicts()) << "seed " << seed;
    units += result.units.size();
    conflicts += result.conflicts.size();
  }
  EXPECT_GT(units, kPrograms);
  EXPECT_GT(conflicts, kPrograms / 10);
}

// Definition 4. Strict two-phase locking is sufficient for it and not necessary (section 3.3),
// where a thread works on one unit after the other, which the paper takes for granted and its
// definition of a unit does not give.
TEST(Offline, WhatIsNotReportedIsSerializableUnlessUnitsOverlap) {
  std::size_t reported_rightly = 0, reported_wrongly = 0, silent_rightly = 0, silent_wrongly = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = run_random_program(seed, options_for(seed));
    const OfflineResult result = offline(run.truth);
    const bool serializable = Serializability(run.truth, result.units).holds();
    if (!result.conflicts.empty()) {
      ++(serializable ? reported_wrongly : reported_rightly);
      continue;
    }
    ++(serializable ? silent_rightly : silent_wrongly);
    if (one_after_the_other(run.truth, result)) {
      ASSERT_TRUE(serializable) << "seed " << seed;
    }
  }
  RecordProperty("reported_not_serializable", std::to_string(reported_rightly));
  RecordProperty("reported_serializable", std::to_string(reported_wrongly));
  RecordProperty("silent_serializable", std::to_string(silent_rightly));
  RecordProperty("silent_not_serializable", std::to_string(silent_wrongly));
  EXPECT_GT(silent_rightly, kPrograms / 10);
  EXPECT_GT(reported_rightly, 4 * silent_wrongly);
  EXPECT_GT(reported_rightly, 2 * reported_wrongly);
}

}  // namespace
}  // namespace heddle::svd
