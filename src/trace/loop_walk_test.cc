#include "trace/loop_walk.h"

#include "abi/abi.h"
#include "base/test_seed.h"

#include <cstdio>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr std::uint64_t kSlot = 0x6000;

struct Item {
  EventKind kind{EventKind::kRead};
  std::uint32_t size{8};
  std::uint32_t base{};       // word of the record
  std::int64_t offset{};      // from it
  std::int64_t distance{};    // from round to round …
  std::uint16_t step_word{};  // … or this word
  bool gathered{};            // … or another word in every round
};

class LoopWalks : public ::testing::Test {
 protected:
  void loop(std::uint32_t always, const std::vector<Item>& items, std::uint8_t words) {
    shape_ = {};
    shape_.kind = RecordShape::Kind::kLoop;
    shape_.always = always;
    for (const Item& item : items) {
      ShapeItem made;
      made.event.kind = item.kind;
      made.event.size = item.size & 0x7fffffffu;
      made.event.address = static_cast<Address>(item.offset);
      made.base = item.base;
      shape_.items.push_back(made);
      shape_.steps.push_back(
          {.distance = item.distance, .word = item.step_word, .gathered = item.gathered});
      const bool first = item.gathered && item.base == words + 1u + shape_.round_words;
      if (first) ++shape_.round_words;
      if (first && shape_.items.size() <= always) ++shape_.last_words;
    }
    shape_.words = words;
    words_ = words;
  }

  // All accesses, made in pieces of about `most`.
  std::string expand(const std::vector<std::uint64_t>& record, std::uint64_t most = 1000) {
    LoopWalk loop;
    const bool paused = (record[0] & 1) != 0;
    const auto fault = paused ? std::optional(record.back()) : std::nullopt;
    if (!loop.begin(shape_, record.data(), fault)) return "cannot be";
    std::string text;
    const auto add = [&](std::size_t item, Address address) {
      char one[40];
      std::snprintf(one, sizeof one, "%s%s%llx", text.empty() ? "" : " ",
                    shape_.items[item].event.kind == EventKind::kWrite ? "w" : "r",
                    static_cast<unsigned long long>(address));
      text += one;
    };
    while (loop.under_way()) loop.walk(add, most);
    return text;
  }

  RecordShape shape_;
  std::uint8_t words_ = 0;  // after the header
};

TEST_F(LoopWalks, RoundByRound) {
  // for (i = 0; i < 3; ++i) y[i] += x[i], doubles: the test runs a fourth time.
  loop(0,
       {{.base = 2, .distance = 8},
        {.base = 3, .distance = 8},
        {.kind = EventKind::kWrite, .base = 3, .distance = 8}},
       3);
  const std::string all = "r100 r200 w200 r108 r208 w208 r110 r210 w210";
  EXPECT_EQ(expand({kSlot, 4, 0x100, 0x200}), all);
  for (std::uint64_t most = 1; most < 12; ++most) {
    EXPECT_EQ(expand({kSlot, 4, 0x100, 0x200}, most), all) << most;
  }
}

TEST_F(LoopWalks, TheLastRoundEndsAtTheTest) {
  loop(1, {{.base = 2}, {.kind = EventKind::kWrite, .base = 3, .distance = -4}}, 3);
  EXPECT_EQ(expand({kSlot, 3, 0x500, 0x100}), "r500 w100 r500 wfc r500");
}

TEST_F(LoopWalks, StaticAddressesAndStepsFromTheRecord) {
  loop(2,
       {{.base = 0, .offset = 0x10, .step_word = 2},
        {.kind = EventKind::kWrite, .base = 0, .offset = -0x10, .distance = 2}},
       2);
  EXPECT_EQ(expand({kSlot, 3, 0x20}), "r6010 w5ff0 r6030 w5ff2 r6050 w5ff4");
  EXPECT_EQ(expand({kSlot, 2, static_cast<std::uint64_t>(-0x10)}), "r6010 w5ff0 r6000 w5ff2");
}

TEST_F(LoopWalks, AFaultEndsTheLoopAtItsFirstAccessOfThePage) {
  loop(0, {{.base = 2, .distance = 8}, {.kind = EventKind::kWrite, .base = 3, .distance = -8}}, 3);
  const auto faulted = [&](Address read, Address write, std::uint64_t fault) {
    return expand({kSlot | 1, ~std::uint64_t{100}, read, write, fault});
  };
  const std::uint64_t known = HEDDLE_FAULT_KNOWN;
  // Upwards into a page, downwards into one, in the first round, and the earlier of two ways.
  EXPECT_EQ(faulted(0x1ff0, 0x9000, 0x2000 | known), "r1ff0 w9000 r1ff8 w8ff8 r2000");
  EXPECT_EQ(faulted(0x1000, 0x9008, 0x8000 | known), "r1000 w9008 r1008 w9000 r1010 w8ff8");
  EXPECT_EQ(faulted(0, 0x9000, 0 | known), "r0");
  EXPECT_EQ(faulted(0x1fe8, 0x3000, 0x2000 | known), "r1fe8 w3000 r1ff0 w2ff8");
  // An element that reaches into the page.
  EXPECT_EQ(faulted(0x1ff4, 0x9000, 0x2000 | known), "r1ff4 w9000 r1ffc");
  // Only writing is forbidden.
  EXPECT_EQ(faulted(0x3000, 0x3008, 0x3000 | known | HEDDLE_FAULT_WRITE), "r3000 w3008");
  EXPECT_EQ(faulted(0x2ff8, 0x4008, 0x3000 | known | HEDDLE_FAULT_WRITE),
            "r2ff8 w4008 r3000 w4000 r3008 w3ff8");
  // Not by this loop, as far as we know: nothing is claimed.
  EXPECT_EQ(faulted(0x1000, 0x9000, 0x20000 | known), "");
  EXPECT_EQ(faulted(0x1000, 0x9000, 0x400000 | known), "");
  EXPECT_EQ(faulted(0x1000, 0x9000, 0), "");
}

TEST_F(LoopWalks, ALoopThatWasKilledClaimsNothing) {
  loop(0, {{.base = 2, .distance = 8}}, 2);
  EXPECT_EQ(expand({kSlot, ~std::uint64_t{5}, 0x100}), "");
  EXPECT_EQ(expand({kSlot, 0, 0x100}), "");
}

TEST_F(LoopWalks, WhatNoLoopCanHaveDone) {
  loop(0, {{.base = 2, .step_word = 3}, {.base = 2}}, 3);
  EXPECT_EQ(expand({kSlot, std::uint64_t{1} << 60, 0x100, 0}), "cannot be");
  EXPECT_EQ(expand({kSlot, HEDDLE_LOOP_MOST + HEDDLE_LOOP_FEWEST + 1, 0x100, 0}), "cannot be");
  EXPECT_EQ(expand({kSlot, 1000, 0x100, std::uint64_t{1} << 40}), "cannot be");
  EXPECT_EQ(expand({kSlot, 1000, 0x100, std::uint64_t{1} << 63}), "cannot be");
  EXPECT_EQ(expand({kSlot, 5, ~std::uint64_t{0} - 100, 8}), "cannot be");
  // A wild pointer that led to the fault.
  EXPECT_EQ(expand({kSlot | 1, ~std::uint64_t{5}, ~std::uint64_t{0} - 100, 8, 0}), "");
}

TEST_F(LoopWalks, WhatIsGathered) {
  // sum += x[index[i]] with the index in the test, and a write to the neighbour in the body.
  loop(2,
       {{.base = 3, .distance = 4},
        {.base = 4, .gathered = true},
        {.kind = EventKind::kWrite, .base = 4, .offset = -8, .gathered = true},
        {.kind = EventKind::kWrite, .base = 5, .gathered = true}},
       3);
  const std::string all = "r100 r900 w8f8 w20 r104 r700 w6f8 w28 r108 r500";
  const std::vector<std::uint64_t> record = {kSlot, 3, 0, 0x100, 0x900, 0x20, 0x700, 0x28, 0x500};
  for (std::uint64_t most = 1; most < 12; ++most) EXPECT_EQ(expand(record, most), all) << most;
  // What is left of the loop after some rounds.
  EXPECT_EQ(expand({kSlot, 2, 5, 0x100, 0x900, 0x20, 0x700}), "r114 r900 w8f8 w20 r118 r700");
}

TEST_F(LoopWalks, AFaultEndsTheLastRoundThatGathered) {
  loop(0,
       {{.base = 3, .distance = 8},
        {.base = 4, .gathered = true},
        {.kind = EventKind::kWrite, .base = 5, .gathered = true}},
       3);
  const auto faulted = [&](std::uint64_t last_read, std::uint64_t last_write, std::uint64_t fault) {
    return expand(
        {kSlot | 1, ~std::uint64_t{2}, 0, 0x1000, 0x3000, 0x4000, last_read, last_write, fault});
  };
  const std::uint64_t known = HEDDLE_FAULT_KNOWN;
  EXPECT_EQ(faulted(0x5000, 0, 0x5000 | known), "r1000 r3000 w4000 r1008 r5000");
  EXPECT_EQ(faulted(0x5000, 0x6000, 0x6000 | known), "r1000 r3000 w4000 r1008 r5000 w6000");
  EXPECT_EQ(faulted(0x4000, 0x4008, 0x4000 | known | HEDDLE_FAULT_WRITE),
            "r1000 r3000 w4000 r1008 r4000 w4008");
  EXPECT_EQ(faulted(0, 0, 0 | known), "r1000 r3000 w4000 r1008 r0");  // a null pointer
  EXPECT_EQ(faulted(0, 0, 0x1000 | known), "r1000 r3000 w4000 r1008");
  EXPECT_EQ(faulted(0x5000, 0, 0), "r1000 r3000 w4000");  // a wild one
}

TEST_F(LoopWalks, NoBlockHasRoomForSoMuch) {
  loop(1, {{.base = 3, .gathered = true}}, 2);
  EXPECT_EQ(expand({kSlot, HEDDLE_BLOCK_WORDS + 1, 0, 0x100}), "cannot be");
  EXPECT_EQ(expand({kSlot, ~std::uint64_t{1} << 40, 0, 0x100}), "");
}

// A believable number of rounds is made in pieces, not at once.
TEST_F(LoopWalks, BillionsOfRounds) {
  loop(0, {{.base = 2}}, 2);
  LoopWalk walk;
  const std::vector<std::uint64_t> record = {kSlot, 1u << 30, 0x100};
  ASSERT_TRUE(walk.begin(shape_, record.data()));
  EXPECT_EQ(walk.accesses(), (1u << 30) - 1);
  std::uint64_t made = 0;
  walk.walk([&](std::size_t, Address) { ++made; }, 100);
  EXPECT_EQ(made, 100u);
  EXPECT_TRUE(walk.under_way());
  EXPECT_EQ(walk.accesses(), (1u << 30) - 101);
}

// The definition, round by round, against the arithmetic of faults.
TEST_F(LoopWalks, FaultsAgainstTheDefinition) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Item> items(1 + random() % 3);
    std::vector<std::uint64_t> record = {kSlot | 1, ~std::uint64_t{4 + random() % 60}};
    for (Item& item : items) {
      item.kind = random() % 2 == 0 ? EventKind::kRead : EventKind::kWrite;
      item.size = 1u << random() % 4;
      item.distance = static_cast<std::int64_t>(random() % 2000) - 1000;
      item.base = static_cast<std::uint32_t>(record.size());
      record.push_back(0x100000 + random() % 0x20000);
    }
    const auto always = static_cast<std::uint32_t>(random() % (items.size() + 1));
    loop(always, items, static_cast<std::uint8_t>(record.size() - 1));
    const Address page = 0x100000 + random() % 0x20 * 0x1000;
    const bool only_writes = random() % 2 == 0;
    record.push_back(page | HEDDLE_FAULT_KNOWN | (only_writes ? HEDDLE_FAULT_WRITE : 0u));

    std::string expected;
    bool found = false;
    const std::uint64_t rounds = ~record[1];
    for (std::uint64_t round = 0; round < rounds && !found; ++round) {
      const std::size_t count = round + 1 < rounds ? items.size() : always;
      for (std::size_t i = 0; i < count && !found; ++i) {
        const Address at =
            record[items[i].base] + round * static_cast<std::uint64_t>(items[i].distance);
        const bool writes = items[i].kind == EventKind::kWrite;
        char one[40];
        std::snprintf(one, sizeof one, "%s%s%llx", expected.empty() ? "" : " ", writes ? "w" : "r",
                      static_cast<unsigned long long>(at));
        expected += one;
        found = at < page + 4096 && at + items[i].size > page && (writes || !only_writes);
      }
    }
    ASSERT_EQ(expand(record, 1 + random() % 40), found ? expected : "") << "trial " << trial;
  }
}

}  // namespace
}  // namespace heddle
