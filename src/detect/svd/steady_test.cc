// Steady rounds against the same rounds one access at a time: threads that go through arrays by
// turns, in loops of random bodies, once as executions, once as records of whole loops, and once as
// events.
#include "detect/svd/outcome.h"
#include "trace/text.h"

#include <array>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr int kSeeds = 4'000;
constexpr int kBodies = 5;
constexpr SegmentId kRest = kBodies + 2;
constexpr std::uint32_t kElements = 170;
constexpr std::uint32_t kArrays = 4;
// An array crosses the end of a page; between them there is room for what is beyond their ends.
constexpr Address kFirst = 0x10000 - 8 * 40;
constexpr Address kApart = 0x4000 + 8 * 4;

ShapeItem item_of(EventKind kind, SiteId site, std::uint32_t base) {
  ShapeItem item;
  item.event.kind = kind;
  item.event.site = site;
  item.event.size = 8;
  item.base = base;
  return item;
}

class Sweeps {
 public:
  explicit Sweeps(unsigned seed) : random_(seed) {
    std::string sites;
    std::string segments =
        "function 1 f registers=8\n"
        "segment 1 in f block=0 index=0\n"
        "  ends fall\n";
    shapes_ = {nullptr, segment(1)};
    for (int body = 0; body < kBodies; ++body) {
      RecordShape& shape = *segment(static_cast<SegmentId>(body + 2));
      segments += fmt::format("segment {} in f block={} index=0 parents={}\n", body + 2, body + 1,
                              body + 1);
      // The first is for the end, the second for what all rounds have in common, the others for
      // whatever may be.
      const std::uint32_t count = body == 0 ? 2 : body == 1 ? 3 : 1 + below(5);
      std::vector<std::uint32_t> read;
      for (std::uint32_t i = 0; i < count; ++i) {
        const bool writes = body < 2 ? i + 1 == count : i > 0 && below(3) == 0;
        const SiteId site = next_site_++;
        sites += fmt::format("site {} @{} kind={}\n", site, site, writes ? "w" : "r");
        if (writes) {
          std::string from;
          for (const std::uint32_t reg : read) {
            if (body < 2 || below(4) != 0)
              from += fmt::format("{}%{}", from.empty() ? "" : " ", reg);
          }
          if (body >= 2 && below(3) == 0)  // what a round before, or another loop, left there
            from += fmt::format("{}%{}", from.empty() ? "" : " ", below(5));
          segments += fmt::format("  access @#{} value=({})\n", site, from);
        } else {
          segments += fmt::format("  access @#{} %{}\n", site, i);
          read.push_back(i);
        }
        shape.items.push_back(item_of(writes ? EventKind::kWrite : EventKind::kRead, site, i + 1));
      }
      segments += body % 2 == 0 || read.empty()
                      ? "  ends branch from=()\n"
                      : fmt::format("  ends branch from=(%{})\n", read[0]);
      shapes_.push_back(&shape);
    }
    // What the registers hold after a loop.
    RecordShape& rest = *segment(kRest);
    segments += fmt::format("segment {} in f block={} index=0\n", kRest, kBodies + 1);
    for (std::uint32_t reg = 0; reg < 4; ++reg) {
      const SiteId site = next_site_++;
      sites += fmt::format("site {} @{} kind=w\n", site, site);
      segments += fmt::format("  access @#{} value=(%{})\n", site, reg);
      rest.items.push_back(item_of(EventKind::kWrite, site, reg + 1));
    }
    segments += "  ends fall\n";
    shapes_.push_back(&rest);
    for (int body = 0; body < kBodies; ++body) add_loops(static_cast<ShapeId>(body + 2));
    trace_ = trace_from_text(sites + segments + "t0: segment 1\n");
    for (const ThreadId thread : {0u, 1u}) add(1, thread, {});
    for (std::uint32_t turn = 2 + below(14); turn > 0; --turn)
      below(8) == 0 ? pass_over(below(2)) : sweep(below(2));
    // Whatever is remembered of memory shows where all of it is read and written once more.
    for (const ThreadId thread : {0u, 1u, 0u}) {
      for (std::uint32_t array = 0; array < kArrays; ++array) {
        for (std::uint32_t i = 0; i < kElements; ++i)
          add(2, thread, {at(array, i), at((array + thread) % kArrays, i)});
      }
    }
  }

  Outcome as_executions() const {
    return Examined(trace_.catalog, OnlineOptions()).executions(executions_, shapes_);
  }
  Outcome as_loops() const {
    return Examined(trace_.catalog, OnlineOptions()).executions(loops_, shapes_);
  }
  Outcome as_events() const {
    return Examined(trace_.catalog, OnlineOptions()).events(executions_, shapes_);
  }

 private:
  std::uint32_t below(std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_);
  }
  static Address at(std::uint32_t array, std::uint32_t element) {
    return kFirst + array * kApart + Address{8} * element;
  }
  RecordShape* segment(SegmentId id) {
    auto shape = std::make_unique<RecordShape>();
    shape->kind = RecordShape::Kind::kSegment;
    shape->id = id;
    return owned_.emplace_back(std::move(shape)).get();
  }
  void add(ShapeId shape, ThreadId thread, std::vector<Address> words) {
    words.insert(words.begin(), 0);
    executions_.push_back(
        Execution::of(shape, thread, words_.emplace_back(std::move(words)).data()));
    loops_.push_back(executions_.back());
  }

  // The record of a loop with this body: its rounds and, for each item, its address and its step.
  // In some, the first item is gathered; in some, the last round ends before the first item.
  void add_loops(ShapeId body) {
    const std::vector<ShapeItem>& items = shapes_[body]->items;
    RecordShape& part = *segment(shapes_[body]->id);
    part.items = items;
    for (std::uint32_t i = 0; i < items.size(); ++i) part.items[i].base = i;
    shapes_.push_back(&part);
    const auto part_id = static_cast<ShapeId>(shapes_.size() - 1);
    const auto count = static_cast<std::uint32_t>(items.size());
    for (const bool gathers : {false, true}) {
      for (const bool ends_early : {false, true}) {
        RecordShape& loop = *segment(0);
        loop.kind = RecordShape::Kind::kLoop;
        loop.always = ends_early ? 0 : count;
        loop.round_words = gathers ? 1 : 0;
        loop.last_words = gathers && !ends_early ? 1 : 0;
        loop.words = static_cast<std::uint8_t>(2 + 2 * count);
        loop.parts = {{.shape = part_id, .begin = 0, .end = count}};
        for (std::uint32_t i = 0; i < count; ++i) {
          const bool gathered = gathers && i == 0;
          LoopWord word{.base = 3 + 2 * i, .step = {.word = static_cast<std::uint16_t>(4 + 2 * i)}};
          if (gathered) word = {.base = loop.words + 1u, .step = {.gathered = true}};
          loop.items.push_back(items[i]);
          loop.items[i].base = word.base;
          loop.steps.push_back(word.step);
          loop.moving.push_back(word);
        }
        shapes_.push_back(&loop);
      }
    }
  }
  struct Item {
    Address from;
    std::uint64_t step;
  };
  void loop(ShapeId body, ThreadId thread, const std::vector<Item>& items, std::uint32_t rounds) {
    const bool gathers = below(3) == 0;
    const bool ends_early = below(2) == 0;
    const std::uint64_t before = gathers ? below(3) : 0;
    const ShapeId shape = kRest + 1 + (body - 2) * 5 + 1 + (gathers ? 2 : 0) + (ends_early ? 1 : 0);
    std::vector<Address> words{0, rounds + (ends_early ? 1 : 0), before};
    for (const Item& item : items)
      words.insert(words.end(), {item.from - before * item.step, item.step});
    for (std::uint32_t round = 0; gathers && round < rounds; ++round)
      words.push_back(items[0].from + round * items[0].step);
    loops_.push_back(Execution::of(shape, thread, words_.emplace_back(std::move(words)).data()));
  }

  // After an array has got into one unit, writes go through it and come to where a read stays.
  void pass_over(ThreadId thread) {
    const std::uint32_t array = below(kArrays);
    const std::uint32_t first = 44 + below(4);
    const Address stays = at(array, first + below(40));
    for (std::uint32_t i = 0; i < 48; ++i)
      add(3, thread,
          {at((array + 1) % kArrays, 2), at(array, first + i),
           at((array + 2) % kArrays, first + i)});
    for (std::uint32_t i = 0; i < 40; ++i) add(2, thread, {stays, at(array, first + i)});
  }

  // One or several loops of a thread, mostly of neighbours in a few arrays.
  void sweep(ThreadId thread) {
    const ShapeId shape = 2 + below(kBodies);
    const std::size_t count = shapes_[shape]->items.size();
    const std::uint32_t steps = below(8) == 0 ? 2 : 1;
    std::vector<Item> items;
    const std::uint32_t first = std::array{4u, 4u, 44u, 90u}[below(4)];
    const std::uint32_t spread = below(3) == 0 ? 24 : 4;
    const std::array arrays{below(kArrays), below(kArrays)};
    const auto draw = [&] {
      items.clear();
      for (std::size_t i = 0; i < count; ++i) {
        const bool stays = below(i == 0 ? 2 : 12) == 0;
        items.push_back({at(arrays[below(2)], first + below(spread)), stays ? 0u : 8 * steps});
      }
    };
    draw();
    for (std::uint32_t times = 1 + below(5); times > 0; --times) {
      if (below(3) == 0) draw();  // what was about one place may be about two
      const std::uint32_t rounds = 1 + below(26) * (3 - steps);
      const std::size_t single = loops_.size();
      for (std::uint32_t round = 0; round < rounds; ++round) {
        std::vector<Address> words;
        words.reserve(items.size());
        for (const Item& item : items) words.push_back(item.from + item.step * round);
        add(shape, thread, std::move(words));
      }
      if (below(8) == 0) continue;
      loops_.resize(single);
      loop(shape, thread, items, rounds);
    }
    if (below(2) == 0) return;
    std::vector<Address> words(4);
    for (Address& word : words) word = at(below(kArrays), below(kElements));
    add(kRest, thread, std::move(words));
  }

  std::mt19937 random_;
  SiteId next_site_ = 1;
  Trace trace_;
  std::vector<std::unique_ptr<RecordShape>> owned_;
  std::vector<const RecordShape*> shapes_;
  std::deque<std::vector<Address>> words_;
  std::vector<Execution> executions_;
  std::vector<Execution> loops_;  // the same, where rounds of loops are in one record
};

TEST(SteadyRounds, LeaveWhatSingleAccessesLeave) {
  std::size_t violations = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Sweeps sweeps(static_cast<unsigned>(seed));
    const Outcome expected = sweeps.as_events();
    for (const Outcome& seen : {sweeps.as_executions(), sweeps.as_loops()}) {
      ASSERT_EQ(seen.violations, expected.violations) << "seed " << seed;
      ASSERT_EQ(seen.members, expected.members) << "seed " << seed;
      ASSERT_EQ(seen.ended, expected.ended) << "seed " << seed;
      ASSERT_EQ(seen.created, expected.created) << "seed " << seed;
    }
    violations += expected.violations.size();
  }
  EXPECT_GT(violations, std::size_t{kSeeds});
}

// Executions of segments 1, 2, … of one function, written by hand.
class Script {
 public:
  explicit Script(const std::string& trace) : trace_(trace_from_text(trace)) {}

  void segment(SegmentId id, std::vector<ShapeItem> items) {
    auto shape = std::make_unique<RecordShape>();
    shape->kind = RecordShape::Kind::kSegment;
    shape->id = id;
    shape->items = std::move(items);
    shapes_.push_back(owned_.emplace_back(std::move(shape)).get());
  }
  void add(ShapeId id, ThreadId thread, std::vector<Address> addresses) {
    addresses.insert(addresses.begin(), 0);
    executions_.push_back(
        Execution::of(id, thread, words_.emplace_back(std::move(addresses)).data()));
  }
  // Of a segment with one access: rounds of a loop over an array.
  void loop(ShapeId id, ThreadId thread, Address from) {
    for (Address i = 0; i < kRounds; ++i) add(id, thread, {from + 8 * i});
  }
  // The same, however they are taken.
  Outcome outcome() const {
    Outcome out = Examined(trace_.catalog, OnlineOptions()).events(executions_, shapes_);
    EXPECT_EQ(Examined(trace_.catalog, OnlineOptions()).executions(executions_, shapes_), out);
    return out;
  }

  static constexpr std::size_t kRounds = 12;

 private:
  Trace trace_;
  std::vector<std::unique_ptr<RecordShape>> owned_;
  std::vector<const RecordShape*> shapes_{nullptr};
  std::deque<std::vector<Address>> words_;
  std::vector<Execution> executions_;
};

// A loop stores a value that was read before it. When the loop comes again, to memory that looks as
// the first did, the value's unit has ended: what is stored now begins units.
TEST(SteadyRounds, OfAUnitThatHasEndedAreNotRemembered) {
  Script script(R"(
site 1 @1 kind=r
site 2 @2 kind=w
site 3 @3 kind=w
site 4 @4 kind=r
function 1 f registers=3
segment 1 in f block=0 index=0
  access @#1 %1
  access @#2 value=(%1)
  ends fall
segment 2 in f block=1 index=0 parents=1
  access @#3 value=(%1)
  ends branch from=()
segment 3 in f block=2 index=0
  access @#4 %2
  ends fall
t0: segment 1
)");
  script.segment(1, {item_of(EventKind::kRead, 1, 1), item_of(EventKind::kWrite, 2, 2)});
  script.segment(2, {item_of(EventKind::kWrite, 3, 1)});
  script.segment(3, {item_of(EventKind::kRead, 4, 1)});
  constexpr Address kInput = 0x1000;
  constexpr Address kComputedValue = 0x1008;
  script.add(1, 0, {kInput, kComputedValue});
  script.loop(2, 0, 0x2000);
  script.loop(2, 0, 0x2100);
  script.add(3, 1, {kComputedValue});
  script.add(3, 0, {kComputedValue});  // which the other thread has seen: the unit ends
  script.loop(2, 0, 0x2200);
  EXPECT_EQ(script.outcome().ended, 1u);
}

// A thread reads back an array that it has filled, another one overwrites it all, and what was read
// last is stored all over it: every round loses an update.
TEST(SteadyRounds, DoNotHideLostUpdates) {
  Script script(R"(
site 1 @1 kind=r
site 2 @2 kind=w
site 3 @3 kind=r
site 4 @4 kind=w
function 1 f registers=3
segment 1 in f block=0 index=0
  access @#1 %1
  ends fall
segment 2 in f block=1 index=0 parents=1
  access @#2 value=(%1)
  ends branch from=()
segment 3 in f block=2 index=0 parents=2
  access @#3 %1
  ends branch from=()
segment 4 in f block=3 index=0 parents=3
  access @#4 value=()
  ends branch from=()
t0: segment 1
)");
  script.segment(1, {item_of(EventKind::kRead, 1, 1)});
  script.segment(2, {item_of(EventKind::kWrite, 2, 1)});
  script.segment(3, {item_of(EventKind::kRead, 3, 1)});
  script.segment(4, {item_of(EventKind::kWrite, 4, 1)});
  constexpr Address kInput = 0x1000;
  constexpr Address kArray = 0x2000;
  script.add(4, 1, {kArray + 0x400});  // somebody else is near
  script.add(1, 0, {kInput});
  script.loop(2, 0, kArray);
  script.loop(3, 0, kArray);
  script.loop(4, 1, kArray);
  script.loop(2, 0, kArray);
  EXPECT_EQ(script.outcome().violations.size(), Script::kRounds);
}

}  // namespace
}  // namespace heddle::svd
