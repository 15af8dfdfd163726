#include "detect/race/race_engine.h"

#include "detect/race/twin.h"
#include "trace/text.h"

#include <set>

#include <gtest/gtest.h>

namespace heddle::race {
namespace {

using testing::EventMask;
using testing::RunShape;

class Recorder final : public RaceSink {
 public:
  void on_race(const Race& race) override { races.push_back(race); }
  std::vector<Race> races;
};

std::vector<Race> races_of(const std::vector<Event>& events, std::size_t collect_from = 4096) {
  Recorder out;
  CallStacks stacks;
  LocksHeld locks;
  RaceEngine engine(out, stacks, locks, collect_from);
  for (std::size_t i = 0; i < events.size(); ++i) {
    stacks.on(events[i]);
    locks.on(events[i]);
    engine.on(events[i], i);
  }
  return std::move(out.races);
}

std::vector<Race> races_of(const char* text) {
  return races_of(trace_from_text(text).events);
}

// What the engine must say, per byte: the first racing event with partners that race with it, and
// from then on exactly the events that race schedulably, with partners that do.
void agrees_with_definition(const RunShape& shape, std::uint64_t seed) {
  const std::vector<Event> events = testing::random_run(seed, shape);
  const ExpectedRaces expected = races_by_definition(events);
  std::map<Address, std::map<std::size_t, ExpectedRaces::AtEvent>> actual;
  for (const Race& race : races_of(events, seed % 2 == 0 ? 4096 : 0)) {
    const EventMask bit = EventMask{1} << ordinal_of(race.earlier.access.time);
    for (Address byte = race.address; byte < race.address + race.size; ++byte) {
      ExpectedRaces::AtEvent& at = actual[byte][ordinal_of(race.later.access.time)];
      at.partners |= bit;
      if (race.schedulable) at.schedulable |= bit;
      EXPECT_EQ(race.first, actual[byte].size() == 1);
    }
  }
  const auto explain = [&] {
    return "seed " + std::to_string(seed) + "\n" + testing::to_string(events);
  };
  ASSERT_EQ(actual.size(), expected.races.size()) << explain();
  for (const auto& [byte, racing] : expected.races) {
    ASSERT_TRUE(actual.contains(byte)) << explain();
    std::set<std::size_t> expected_events{racing.begin()->first};
    for (const auto& [event, at] : racing) {
      if (at.schedulable != 0) expected_events.insert(event);
    }
    std::set<std::size_t> actual_events;
    for (const auto& [event, at] : actual[byte]) {
      actual_events.insert(event);
      ASSERT_TRUE(racing.contains(event)) << explain();
      const ExpectedRaces::AtEvent& by_definition = racing.at(event);
      EXPECT_EQ(at.partners & ~by_definition.partners, 0u) << explain();
      EXPECT_EQ(at.schedulable, at.partners & by_definition.schedulable) << explain();
      EXPECT_EQ(at.schedulable != 0, by_definition.schedulable != 0) << explain();
    }
    ASSERT_EQ(actual_events, expected_events) << "byte " << byte << " " << explain();
  }
}

TEST(RaceDefinition, LocksAndThreads) {
  RunShape shape;
  shape.threads = 5;
  for (std::uint64_t seed = 0; seed < 50'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(RaceDefinition, BytesOfAllSizes) {
  RunShape shape;
  shape.overlapping = true;
  shape.fork_join = false;
  shape.threads = 3;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(RaceDefinition, AtomicsAndEverythingElse) {
  RunShape shape;
  shape.atomics = shape.other_sync = true;
  shape.threads = 4;
  shape.events = 40;
  shape.plain = 40;
  for (std::uint64_t seed = 0; seed < 40'000; ++seed) {
    ASSERT_NO_FATAL_FAILURE(agrees_with_definition(shape, seed));
  }
}

TEST(RaceEngine, OrderedAccessesDoNotRace) {
  EXPECT_TRUE(races_of("t0: acq m\nt0: w x\nt0: rel m\nt1: acq m\nt1: w x\nt1: rel m\n").empty());
  EXPECT_TRUE(races_of("t0: w x\nt0: fork t1\nt1: w x\nt0: join t1\nt0: w x\n").empty());
  EXPECT_EQ(races_of("t0: w x\nt1: w x\n").size(), 1u);
}

TEST(RaceEngine, NeighbouringBytesAreTwoVariables) {
  EXPECT_TRUE(races_of("t0: w x:1\nt1: w x+1:1\n").empty());
  EXPECT_EQ(races_of("t0: w x:1\nt1: w x:2\n").size(), 1u);
}

// Reading a racing flag and acting on it: the race on the flag is real, the one on the data need
// not be. As the first race of `data` it is reported, marked as perhaps a consequence; when thread
// 1 goes on, it is not reported again.
TEST(RaceEngine, OneRaceDoesNotPoisonTheNext) {
  const std::vector<Race> races =
      races_of("t0: w data\nt0: w flag\nt1: r flag\nt1: w data\nt1: r data\nt0: w other\n");
  ASSERT_EQ(races.size(), 2u);
  EXPECT_TRUE(races[0].schedulable);
  EXPECT_FALSE(races[1].schedulable);
  EXPECT_TRUE(races[1].first);
}

TEST(RaceEngine, AnAtomicAccessRacesWithAPlainOneOnly) {
  EXPECT_TRUE(races_of("t0: w.relaxed x\nt1: rmw.relaxed x\n").empty());
  EXPECT_EQ(races_of("t0: w x\nt1: r.relaxed x\n").size(), 1u);
  EXPECT_TRUE(races_of("t0: w x\nt0: w.release x\nt1: r.acquire x\n").empty());
}

TEST(RaceEngine, FreedMemoryStartsAfresh) {
  EXPECT_TRUE(races_of("t0: alloc h:16\nt0: w h\nt0: free h\nt1: alloc h:16\nt1: w h\nt1: free h\n")
                  .empty());
}

TEST(RaceEngine, AFreeRacesWithAnUnorderedUse) {
  const std::vector<Race> races = races_of("t0: alloc h:16\nt0: fork t1\nt1: r h+8\nt0: free h\n");
  ASSERT_EQ(races.size(), 1u);
  EXPECT_EQ(races[0].later.operation.kind, EventKind::kFree);
  EXPECT_TRUE(
      races_of("t0: alloc h:16\nt0: fork t1\nt1: r h+8\nt0: join t1\nt0: free h\n").empty());
}

}  // namespace
}  // namespace heddle::race
