// Offline SVD against the definitions, written naively; online SVD against what its documentation
// says of it.
#include "detect/svd/offline.h"
#include "detect/svd/online.h"
#include "detect/svd/random_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
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
  return options;
}

// Definitions 1–3, on explicit sets of arcs.
struct BruteForce {
  explicit BruteForce(std::span<const FlowNode> all) : nodes(all) {
    std::map<Address, std::set<ThreadId>> users;
    for (const FlowNode& node : nodes) {
      if (node.kind != EventKind::kBranch) users[node.address].insert(node.thread);
    }
    for (NodeId id = 0; id < nodes.size(); ++id) {
      const FlowNode& node = nodes[id];
      for (const NodeId to : node.data) plain.insert({id, to});
      if (node.control != kNoNode) plain.insert({id, node.control});
      for (const NodeId to : node.memory) {
        (users[node.address].size() > 1 ? shared : plain).insert({id, to});
      }
    }
    // Definition 2: the earliest shared arc first (arcs are ordered by their later end).
    for (const auto& [b, a] : shared) {
      std::set<std::pair<NodeId, NodeId>> crossing;
      const std::set<NodeId> near = connected(a, b);
      for (const auto& [y, x] : plain) {
        if (y >= b && near.contains(x)) crossing.insert({y, x});
      }
      for (const auto& arc : crossing) plain.erase(arc);
    }
  }

  // Everything weakly connected with `start` along plain arcs between statements before `before`.
  std::set<NodeId> connected(NodeId start, NodeId before) const {
    std::set<NodeId> reached{start};
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [later, earlier] : plain) {
        if (later >= before || reached.contains(later) == reached.contains(earlier)) continue;
        reached.insert(later);
        reached.insert(earlier);
        grew = true;
      }
    }
    return reached;
  }

  std::set<NodeId> unit_of(NodeId node) const {
    return connected(node, static_cast<NodeId>(nodes.size()));
  }

  std::vector<Conflict> conflicts() const {
    std::vector<Conflict> out;
    for (NodeId inside = 0; inside < nodes.size(); ++inside) {
      const std::set<NodeId> unit = unit_of(inside);
      for (NodeId remote = inside + 1; remote < *unit.rbegin(); ++remote) {
        const FlowNode& a = nodes[inside];
        const FlowNode& b = nodes[remote];
        if (a.thread != b.thread && a.kind != EventKind::kBranch && b.kind != EventKind::kBranch &&
            a.address == b.address &&
            (a.kind == EventKind::kWrite || b.kind == EventKind::kWrite)) {
          out.push_back({inside, remote});
        }
      }
    }
    return out;
  }

  std::span<const FlowNode> nodes;
  std::set<std::pair<NodeId, NodeId>> plain;   // control and local true dependences
  std::set<std::pair<NodeId, NodeId>> shared;  // true dependences through shared variables
};

TEST(Flow, TheMachineSeesTheDependencesThatTheInterpreterSaw) {
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
      ASSERT_EQ(seen.data, truth.data) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.memory, truth.memory) << "seed " << seed << " node " << id;
      ASSERT_EQ(seen.control, truth.control) << "seed " << seed << " node " << id;
    }
  }
}

TEST(Svd, OfflineEqualsTheDefinitions) {
  std::size_t units = 0;
  std::size_t conflicts = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = run_random_program(seed, options_for(seed));
    const OfflineResult result = offline(run.truth);
    const BruteForce brute(run.truth);
    for (const OfflineUnit& unit : result.units) {
      const std::set<NodeId> expected = brute.unit_of(unit.members.front());
      ASSERT_EQ(std::set<NodeId>(unit.members.begin(), unit.members.end()), expected)
          << "seed " << seed;
    }
    ASSERT_EQ(result.conflicts, brute.conflicts()) << "seed " << seed;
    units += result.units.size();
    conflicts += result.conflicts.size();
  }
  EXPECT_GT(units, kPrograms);
  EXPECT_GT(conflicts, kPrograms / 10);
}

std::vector<Violation> online(const RandomRun& run, const OnlineOptions& options) {
  Online detector(run.catalog, options);
  EventOrdinal ordinal = 0;
  for (const Event& event : run.events) detector.on(event, ordinal++);
  return detector.take_violations();
}

NodeId node_at(const RandomRun& run, EventOrdinal ordinal) {
  for (NodeId id = 0; id < run.truth.size(); ++id) {
    if (run.truth[id].kind != EventKind::kBranch && run.truth[id].ordinal == ordinal) return id;
  }
  return kNoNode;
}

// Whatever the heuristics, a report is never about unrelated accesses: the store is connected to
// the input by dependences of its thread, and the input was overwritten in between.
TEST(Svd, EveryOnlineViolationIsAnOverwrittenInputOfAConnectedStore) {
  std::size_t violations = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = run_random_program(seed, options_for(seed));
    BruteForce graph(run.truth);
    graph.plain.clear();
    std::map<std::pair<ThreadId, Address>, NodeId> last_of_block;
    for (NodeId id = 0; id < run.truth.size(); ++id) {
      const FlowNode& node = run.truth[id];
      if (node.kind != EventKind::kBranch) {
        const auto [last, first] = last_of_block.try_emplace({node.thread, node.address}, id);
        if (!first) graph.plain.insert({id, std::exchange(last->second, id)});
      }
      for (const NodeId to : node.data) graph.plain.insert({id, to});
      for (const NodeId to : node.memory) graph.plain.insert({id, to});
      if (node.control != kNoNode) graph.plain.insert({id, node.control});
    }
    for (const Violation& violation : online(run, {})) {
      ++violations;
      ASSERT_EQ(violation.inside.thread, violation.store.thread) << "seed " << seed;
      ASSERT_NE(violation.inside.thread, violation.remote.thread) << "seed " << seed;
      ASSERT_LT(violation.inside.ordinal, violation.remote.ordinal) << "seed " << seed;
      ASSERT_LT(violation.remote.ordinal, violation.store.ordinal) << "seed " << seed;
      const NodeId inside = node_at(run, violation.inside.ordinal);
      const NodeId remote = node_at(run, violation.remote.ordinal);
      const NodeId store = node_at(run, violation.store.ordinal);
      ASSERT_EQ(run.truth[inside].kind, EventKind::kRead) << "seed " << seed;
      ASSERT_EQ(run.truth[remote].kind, EventKind::kWrite) << "seed " << seed;
      ASSERT_EQ(run.truth[store].kind, EventKind::kWrite) << "seed " << seed;
      ASSERT_EQ(run.truth[inside].address, run.truth[remote].address) << "seed " << seed;
      ASSERT_TRUE(graph.unit_of(store).contains(inside)) << "seed " << seed;
    }
  }
  EXPECT_GT(violations, kPrograms / 20);
}

}  // namespace
}  // namespace heddle::svd
