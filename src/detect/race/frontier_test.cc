#include "detect/race/frontier.h"

#include "order/random_run.h"
#include "trace/text.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace heddle::race {
namespace {

using testing::EventMask;
using testing::RunShape;

bool conflict(const Event& a, const Event& b) {
  const Effect of_a = effect_of(a);
  const Effect of_b = effect_of(b);
  if (of_a == Effect::kNone || of_b == Effect::kNone) return false;
  if (of_a == Effect::kLooks && of_b == Effect::kLooks) return false;
  if (is_access(a.kind) != is_access(b.kind)) return false;
  if (!is_access(a.kind)) return a.address == b.address;
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

bool ordered_by_threads(const Event& a, const Event& b) {
  return a.thread == b.thread || (a.kind == EventKind::kFork && a.value == b.thread) ||
         (b.kind == EventKind::kJoin && b.value == a.thread);
}

using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

Pairs pairs_by_definition(const std::vector<Event>& events) {
  std::vector<EventMask> before(events.size());
  Pairs out;
  for (std::size_t j = 0; j < events.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (ordered_by_threads(events[i], events[j]) || conflict(events[i], events[j])) {
        before[j] |= before[i] | EventMask{1} << i;
      }
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (!conflict(events[i], events[j]) || ordered_by_threads(events[i], events[j])) continue;
      // Some other event after i that j comes after?
      bool tight = true;
      for (std::size_t k = i + 1; k < j; ++k) {
        const bool leads_to_j =
            ordered_by_threads(events[k], events[j]) || conflict(events[k], events[j]);
        if (leads_to_j && before[k] >> i & 1) tight = false;
      }
      if (tight) out.emplace(i, j);
    }
  }
  return out;
}

Pairs pairs_of(const std::vector<Event>& events) {
  CallStacks stacks;
  LocksHeld locks;
  FrontierEngine engine(stacks, locks);
  Pairs out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (const FrontierEngine::Pair& pair : engine.on(events[i], i)) {
      out.emplace(ordinal_of(pair.earlier.access.time), i);
    }
  }
  return out;
}

RunShape shape_for(std::uint64_t seed) {
  RunShape shape;
  shape.overlapping = seed % 4 == 0;
  shape.other_sync = seed % 3 == 0;
  shape.atomics = seed % 5 == 0;
  shape.plain = 50;
  return shape;
}

TEST(FrontierDefinition, TightestPairsOfRandomRuns) {
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    const std::vector<Event> events = testing::random_run(seed, shape_for(seed));
    ASSERT_EQ(pairs_of(events), pairs_by_definition(events)) << "seed " << seed << "\n"
                                                             << testing::to_string(events);
  }
}

// A catalog in which every event of a random run has a line of its own.
Catalog catalog_of(const std::vector<Event>& events) {
  Catalog catalog;
  for (std::size_t i = 0; i < events.size(); ++i) {
    Site site;
    site.line = static_cast<std::uint32_t>(i + 1);
    catalog.sites.push_back(site);
  }
  return catalog;
}

std::set<Address> racy_words(const std::vector<Finding>& findings) {
  std::set<Address> out;
  for (const Finding& finding : findings) out.insert(finding.variables.at(0).address / 8);
  return out;
}

// The second pass with random marks, against the closure of its definition.
TEST(FrontierDefinition, OnlyMarkedAccessesOrder) {
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    RunShape shape = shape_for(seed);
    shape.overlapping = false;
    const std::vector<Event> events = testing::random_run(seed, shape);
    const Catalog catalog = catalog_of(events);
    std::mt19937_64 random(seed);
    FrontierSettings settings;
    settings.pass = FrontierSettings::Pass::kFind;
    FrontierDetector find(catalog, &settings);
    find.on(events, 0);
    EXPECT_TRUE(find.finish().empty());
    std::vector<bool> marked(events.size());
    Marks marks;
    for (MarkedPair pair : settings.marks.pairs()) {
      pair.mark = random() % 2 == 0 ? Mark::kSync : Mark::kData;
      if (pair.mark == Mark::kSync) {
        for (const MarkedPlace& side : {pair.first, pair.second}) {
          marked[std::stoul(side.place.substr(1)) - 1] = true;
        }
      }
      marks.add(std::move(pair));
    }
    settings.pass = FrontierSettings::Pass::kApply;
    settings.marks = marks;

    std::vector<EventMask> before(events.size());
    std::set<Address> expected;
    for (std::size_t j = 0; j < events.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        if (ordered_by_threads(events[i], events[j]) ||
            (marked[i] && marked[j] && conflict(events[i], events[j]))) {
          before[j] |= before[i] | EventMask{1} << i;
        }
      }
      for (std::size_t i = 0; i < j; ++i) {
        if (!is_access(events[i].kind) || !conflict(events[i], events[j])) continue;
        if (events[i].thread == events[j].thread || (marked[i] && marked[j])) continue;
        if (!(before[j] >> i & 1)) expected.insert(events[j].address / 8);
      }
    }
    FrontierDetector apply(catalog, &settings);
    apply.on(events, 0);
    ASSERT_EQ(racy_words(apply.finish()), expected)
        << "seed " << seed << "\n"
        << marks.to_text() << testing::to_string(events);
  }
}

TEST(FrontierDetector, MarkedAutomaticallyAgreesWithRace) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::vector<Event> events = testing::random_run(seed, shape_for(seed));
    const Catalog catalog = catalog_of(events);
    FrontierSettings settings;
    FrontierDetector frontier(catalog, &settings);
    RaceDetector race(catalog);
    frontier.on(events, 0);
    race.on(events, 0);
    const std::vector<Finding> by_frontier = frontier.finish();
    const std::vector<Finding> by_race = race.finish();
    ASSERT_EQ(by_frontier.size(), by_race.size()) << "seed " << seed;
    for (std::size_t i = 0; i < by_race.size(); ++i) {
      ASSERT_EQ(by_frontier[i].fingerprint, by_race[i].fingerprint) << "seed " << seed;
      ASSERT_EQ(by_frontier[i].count, by_race[i].count) << "seed " << seed;
    }
  }
}

// A home-made flag: nothing is known about it until it is marked.
TEST(FrontierDetector, AHomeMadeFlagIsSynchronisationOnceMarked) {
  const Trace trace = trace_from_text(
      "t0: fork t1\n"
      "t0: w data @q.c:1 in put\n"
      "t0: w ready @q.c:2 in put\n"
      "t1: r ready @q.c:8 in get\n"
      "t1: r data @q.c:9 in get\n");
  FrontierSettings settings;
  settings.pass = FrontierSettings::Pass::kFind;
  FrontierDetector find(trace.catalog, &settings);
  find.on(trace.events, 0);
  EXPECT_TRUE(find.finish().empty());
  const std::string file = settings.marks.to_text();
  EXPECT_NE(file.find("?\t1\twrite\tput\tq.c:2:0\tread\tget\tq.c:8:0\tready\n"), std::string::npos)
      << file;
  EXPECT_EQ(file.find("q.c:9"), std::string::npos) << "the pair on data is not tight\n" << file;

  const auto apply = [&](const std::string& mark) {
    std::string marked = file;
    marked.replace(marked.find("?\t1"), 1, mark);
    Result<Marks> marks = Marks::parse(marked, "marks");
    EXPECT_TRUE(marks.ok());
    FrontierSettings second;
    second.pass = FrontierSettings::Pass::kApply;
    second.marks = *marks;
    FrontierDetector detector(trace.catalog, &second);
    detector.on(trace.events, 0);
    return detector.finish().size();
  };
  EXPECT_EQ(apply("sync"), 0u);
  EXPECT_EQ(apply("data"), 2u);
}

TEST(Marks, SayWhatIsWrongWithAFile) {
  const auto message = [](const char* text) { return Marks::parse(text, "m").error().message; };
  EXPECT_TRUE(message("hello\n").starts_with("m:1: found `hello`"));
  EXPECT_TRUE(message("# heddle frontier 1\nsync\t1\n").starts_with("m:2: found 2 fields"));
  EXPECT_TRUE(message("# heddle frontier 1\nmaybe\t1\ta\tb\tc\td\te\tf\tg\n")
                  .starts_with("m:2: found `maybe`"));
}

}  // namespace
}  // namespace heddle::race
