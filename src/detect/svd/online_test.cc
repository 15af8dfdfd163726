// Online SVD against its naive twin, and against the definition, heuristic by heuristic.
#include "detect/svd/online.h"

#include "detect/svd/definitions.h"
#include "detect/svd/naive.h"
#include "detect/svd/offline.h"
#include "detect/svd/random_program.h"

#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr std::uint64_t kPrograms = 50'000;
constexpr std::uint64_t kWalks = 10'000;  // which are longer

RandomRun program(std::uint64_t seed) {
  RandomProgramOptions options;
  options.threads = 2 + static_cast<int>(seed % 2);
  options.statements = 4 + static_cast<int>(seed % 7);
  options.shared_variables = 1 + static_cast<int>(seed % 3);
  options.plain = seed % 4 == 0;
  options.marks = seed % 3 == 1;
  return run_random_program(seed, options);
}

OnlineOptions combination(std::uint64_t number) {
  constexpr std::uint32_t kBlockSizes[] = {4, 1, 8, 4, 16, 2, 4, 64};
  OnlineOptions options;
  options.merge_control = (number & 1) != 0;
  options.propagate_address = (number & 2) != 0;
  options.inputs_only = (number & 4) == 0;
  options.block_size = kBlockSizes[(number >> 3) % 8];
  return options;
}

// A run as the collector would hand it over: calls, and segments whose accesses all come at once,
// are executions, the rest are events. Of those without accesses most are implied by the next one.
// A segment has the same shape whenever it is executed after the same implied ones.
class AsExecutions {
 public:
  explicit AsExecutions(const RandomRun& run) {
    const bool implies = run.events.size() % 4 != 0;
    for (std::size_t i = 0; i < run.events.size();) {
      std::vector<std::uint32_t> before;
      while (implies && is_implied(run, i))
        before.push_back(static_cast<SegmentId>(run.events[i++].value));
      const std::size_t items = items_behind(run, i);
      if (items != kNone) {
        add(std::move(before), std::span(run.events).subspan(i, 1 + items));
        i += 1 + items;
      } else if (is_call(run.events[i])) {
        add_call(run.events[i++]);
      } else {
        executions_.push_back(Execution::events(1));
        words_.emplace_back();
        events_.push_back(run.events[i++]);
      }
    }
    // Where words and shapes are is known when all are there.
    for (const auto& shape : shapes_) addresses_of_shapes_.push_back(&shape);
    for (std::size_t i = 0; i < executions_.size(); ++i) executions_[i].words = words_[i].data();
  }

  ExecutionBatch batch() const { return {executions_, events_, addresses_of_shapes_, true}; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static std::size_t items_behind(const RandomRun& run, std::size_t at) {
    const Event& segment = run.events[at];
    if (segment.kind != EventKind::kSegment) return kNone;
    const auto& items = run.catalog.segments[segment.value].items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (at + 1 + i >= run.events.size()) return kNone;
      const Event& event = run.events[at + 1 + i];
      if (!is_access(event.kind) || event.thread != segment.thread || event.site != items[i].site)
        return kNone;
    }
    return items.size();
  }

  // Whether the event is a segment without accesses, and what comes next can say so.
  static bool is_implied(const RandomRun& run, std::size_t at) {
    return items_behind(run, at) == 0 && at + 1 < run.events.size() &&
           run.events[at + 1].thread == run.events[at].thread && items_behind(run, at + 1) != kNone;
  }

  static bool is_call(const Event& event) {
    return event.kind == EventKind::kEnter || event.kind == EventKind::kLeave;
  }

  void add_call(const Event& event) {
    const bool enters = event.kind == EventKind::kEnter;
    words_.emplace_back(1, 0);
    const auto id = static_cast<FunctionId>(event.value);
    const auto [known, is_new] =
        (enters ? enters_ : leaves_).try_emplace(id, static_cast<ShapeId>(shapes_.size()));
    executions_.push_back(Execution::of(known->second, event.thread, nullptr));
    if (!is_new) return;
    RecordShape& shape = shapes_.emplace_back();
    shape.kind = enters ? RecordShape::Kind::kEnter : RecordShape::Kind::kLeave;
    shape.id = id;
  }

  // A part of each address is in the shape; the sizes of some are not.
  void add(std::vector<std::uint32_t> before, std::span<const Event> events) {
    std::vector<std::uint64_t>& words = words_.emplace_back(1, 0);
    for (const Event& event : events.subspan(1)) words.push_back(event.address - event.site);
    for (const Event& event : events.subspan(1)) words.push_back(event.size + 1);
    const auto id = static_cast<SegmentId>(events[0].value);
    const auto [known, is_new] =
        known_.try_emplace({id, before}, static_cast<ShapeId>(shapes_.size()));
    executions_.push_back(Execution::of(known->second, events[0].thread, nullptr));
    if (!is_new) return;
    RecordShape& shape = shapes_.emplace_back();
    shape.before = std::move(before);
    shape.id = id;
    for (const Event& event : events.subspan(1)) {
      ShapeItem item{event, static_cast<std::uint32_t>(shape.items.size() + 1)};
      item.event.thread = 0;
      item.event.address = event.site;
      if (id % 3 == 0) {
        item.event.size = 0;
        item.size_word = static_cast<std::uint32_t>(events.size() - 1 + shape.items.size() + 1);
      }
      shape.items.push_back(item);
    }
  }

  std::vector<RecordShape> shapes_{{}};
  std::map<std::pair<SegmentId, std::vector<std::uint32_t>>, ShapeId> known_;
  std::map<FunctionId, ShapeId> enters_;
  std::map<FunctionId, ShapeId> leaves_;
  std::vector<std::vector<std::uint64_t>> words_;  // by execution
  std::vector<const RecordShape*> addresses_of_shapes_;
  std::vector<Execution> executions_;
  std::vector<Event> events_;
};

enum class As { kEvents, kExecutions };

std::set<Naive::Report> online(const RandomRun& run, const OnlineOptions& options,
                               As as = As::kEvents, std::size_t* ended = nullptr) {
  std::map<EventOrdinal, NodeId> node_at;
  for (NodeId id = 0; id < run.truth.size(); ++id) {
    if (run.truth[id].kind != EventKind::kBranch) node_at[run.truth[id].ordinal] = id;
  }
  std::set<Naive::Report> out;
  Online detector(run.catalog, options);
  const auto take = [&] {
    for (const Violation& violation : detector.take_violations()) {
      EXPECT_EQ(violation.inside.thread, violation.store.thread);
      EXPECT_NE(violation.inside.thread, violation.remote.thread);
      const bool is_new =
          out.insert({node_at.at(violation.inside.ordinal), node_at.at(violation.remote.ordinal),
                      node_at.at(violation.store.ordinal)})
              .second;
      EXPECT_TRUE(is_new);  // once, however many blocks the accesses have in common
    }
  };
  if (as == As::kExecutions) {
    const AsExecutions executions(run);
    EXPECT_EQ(detector.on(executions.batch(), 0, take), run.events.size());
    EXPECT_TRUE(detector.take_violations().empty());  // they were told when they happened
    if (ended != nullptr) *ended = detector.units_ended_by_sharing();
    return out;
  }
  std::span<const Event> rest = run.events;
  EventOrdinal ordinal = 0;
  while (!rest.empty()) {
    const std::size_t count = detector.on(rest, ordinal);
    rest = rest.subspan(count);
    ordinal += count;
    take();
  }
  if (ended != nullptr) *ended = detector.units_ended_by_sharing();
  return out;
}

std::string text(const std::set<Naive::Report>& reports) {
  std::string out;
  for (const Naive::Report& report : reports) {
    out += "(" + std::to_string(report.inside) + " " + std::to_string(report.remote) + " " +
           std::to_string(report.store) + ") ";
  }
  return out;
}

// The same, but for the reads.
std::set<std::pair<NodeId, NodeId>> without_inside(const std::set<Naive::Report>& reports) {
  std::set<std::pair<NodeId, NodeId>> out;
  for (const Naive::Report& report : reports) out.insert({report.remote, report.store});
  return out;
}

// From events and from executions, with the default options and with one of all combinations of
// options and block sizes; numbers are collected all the time, seldom, or never. Where they are, a
// read whose value no register holds is forgotten: of several reads of what the thread had stored,
// another one is then the one that is named.
TEST(Online, EqualsItsNaiveTwin) {
  std::size_t reports = 0;
  std::size_t other_reads = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = program(seed);
    for (OnlineOptions options : {OnlineOptions(), combination(seed)}) {
      options.note_limit = 1u << 20;
      const Naive naive(run.truth, {options});
      options.collect_bytes = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 200 : 1u << 20;
      options.collect_times = 0;
      options.hot = 1;
      options.told = 1 + seed % 4;
      std::array<std::size_t, 2> ended{};
      for (const As as : {As::kEvents, As::kExecutions}) {
        const std::set<Naive::Report> seen =
            online(run, options, as, &ended[static_cast<std::size_t>(as)]);
        reports += seen.size();
        if (seed % 3 != 2 && without_inside(seen) == without_inside(naive.reports())) {
          other_reads += seen != naive.reports() ? 1 : 0;
          continue;
        }
        ASSERT_EQ(text(seen), text(naive.reports()))
            << "seed " << seed << (as == As::kEvents ? " events" : " executions") << " control "
            << options.merge_control << " address " << options.propagate_address << " inputs "
            << options.inputs_only << " block " << options.block_size;
      }
      // Where nothing is forgotten, the same units end, although nobody may ever report it.
      if (seed % 3 == 2) {
        ASSERT_EQ(ended[0], ended[1]) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(reports, kPrograms / 5);
  std::printf("%zu runs name another read\n", other_reads);
  EXPECT_LT(other_reads, kPrograms / 2'000);
}

// Threads that go on for a while, in loops of many rounds: executions of one segment after another.
TEST(Online, EqualsItsNaiveTwinInLongLoops) {
  std::size_t reports = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    RandomProgramOptions shape;
    shape.statements = 9;
    shape.registers = 4;
    shape.iterations = 9;
    shape.turn = 12 + 24 * static_cast<int>(seed % 2);
    shape.marks = seed % 4 < 2;
    const RandomRun run = run_random_program(seed, shape);
    OnlineOptions options;
    options.hot = seed % 3 == 0 ? 2 : 1;
    options.told = 1 + seed % 4;
    options.note_limit = 1u << 20;
    const Naive naive(run.truth, {options});
    const std::set<Naive::Report> seen = online(run, options, As::kExecutions);
    ASSERT_EQ(text(seen), text(naive.reports())) << "seed " << seed;
    reports += seen.size();
  }
  EXPECT_GT(reports, kPrograms / 20);
}

// Loops that go through many variables, again and again: most of their rounds change nothing, or
// each the same, until one comes to a variable that is different.
TEST(Online, EqualsItsNaiveTwinInWalks) {
  std::size_t reports = 0;
  for (std::uint64_t seed = 0; seed < kWalks; ++seed) {
    RandomProgramOptions shape;
    shape.statements = 5 + static_cast<int>(seed % 4);
    shape.registers = 2 + static_cast<int>(seed % 3);
    const bool is_long = seed % 6 == 0;
    shape.shared_variables = is_long ? 16 : 3;
    shape.own_variables = is_long ? 16 : 9;
    shape.iterations = is_long ? 28 : 12;
    shape.turn = is_long ? 150 : 60;
    shape.walks = true;
    const RandomRun run = run_random_program(seed, shape);
    OnlineOptions options;
    options.note_limit = 1u << 20;
    options.set_limit = 1u << 20;  // which the twin does not have
    const Naive naive(run.truth, {options});
    options.collect_bytes = seed % 4 == 0 ? 0 : 1u << 20;
    options.collect_times = 0;
    options.hot = seed % 3 == 0 ? 2 : 1;
    options.told = 1 + seed % 4;
    std::array<std::size_t, 2> ended{};
    const std::set<Naive::Report> seen = online(run, options, As::kExecutions, &ended[0]);
    ASSERT_EQ(text(seen), text(naive.reports())) << "seed " << seed;
    online(run, options, As::kEvents, &ended[1]);
    if (options.collect_bytes != 0) {
      ASSERT_EQ(ended[0], ended[1]) << "seed " << seed;
    }
    reports += seen.size();
  }
  EXPECT_GT(reports, kWalks / 50);
}

// From the online algorithm to the definition, one heuristic at a time. Both ends are checked: the
// first step is what Online reports, the last what offline() reports (which offline_test checks
// against the definitions), so every difference belongs to some step.
TEST(Online, DiffersFromTheDefinitionOnlyByItsHeuristics) {
  using Pairs = std::set<std::pair<NodeId, NodeId>>;
  constexpr std::array<const char*, 6> kSteps = {
      "control dependences connect units",
      "addresses are not checked",
      "all blocks are checked, not only inputs",
      "checked until the unit's last statement, every pair",
      "sharing is known beforehand",
      "units are made of statements, not of blocks",
  };
  std::array<std::size_t, 6> added{};
  std::array<std::size_t, 6> removed{};
  std::size_t online_reports = 0;
  std::size_t offline_reports = 0;
  std::size_t in_both = 0;
  const auto pairs_of = [](const std::set<Naive::Report>& reports) {
    Pairs out;
    for (const Naive::Report& report : reports) out.insert({report.inside, report.remote});
    return out;
  };
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomRun run = program(seed);
    NaiveOptions options;
    std::vector<Pairs> ladder{pairs_of(online(run, options.online))};
    ASSERT_EQ(ladder[0], pairs_of(Naive(run.truth, options).reports())) << "seed " << seed;
    options.online.merge_control = true;
    ladder.push_back(pairs_of(Naive(run.truth, options).reports()));
    options.check_address = false;
    ladder.push_back(pairs_of(Naive(run.truth, options).reports()));
    options.online.inputs_only = false;
    const Naive all_blocks(run.truth, options);
    ladder.push_back(pairs_of(all_blocks.reports()));
    ladder.push_back(all_blocks.conflicts());
    options.sharing_known = true;
    ladder.push_back(Naive(run.truth, options).conflicts());
    Pairs defined;
    for (const Conflict& conflict : offline(run.truth).conflicts)
      defined.insert({conflict.inside, conflict.remote});
    ladder.push_back(defined);
    for (std::size_t step = 0; step < kSteps.size(); ++step) {
      for (const auto& pair : ladder[step + 1]) added[step] += !ladder[step].contains(pair);
      for (const auto& pair : ladder[step]) removed[step] += !ladder[step + 1].contains(pair);
    }
    online_reports += ladder.front().size();
    offline_reports += defined.size();
    for (const auto& pair : ladder.front()) in_both += defined.contains(pair);
  }
  std::printf("online reports %zu pairs, the definition %zu, both %zu\n", online_reports,
              offline_reports, in_both);
  for (std::size_t step = 0; step < kSteps.size(); ++step)
    std::printf("  %-52s +%zu −%zu\n", kSteps[step], added[step], removed[step]);
  EXPECT_GT(in_both, kPrograms / 50);
  for (std::size_t step = 0; step < kSteps.size(); ++step)
    EXPECT_GT(added[step] + removed[step], 0u) << kSteps[step];
}

}  // namespace
}  // namespace heddle::svd
