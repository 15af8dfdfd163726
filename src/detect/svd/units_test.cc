// Units, sets, control lists and shadow cells, each on its own.
#include "detect/svd/units.h"

#include "detect/svd/blocks.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

std::set<UnitId> members(Units& units, UnitSet set) {
  std::set<UnitId> out;
  units.for_each_live(set, [&](UnitId unit) { out.insert(unit); });
  return out;
}

TEST(Units, ASetKeepsItsUnitsApartUpToTheLimit) {
  Units units(4);
  UnitSet set = 0;
  std::vector<UnitId> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(units.create());
    set = units.join(set, all.back());
  }
  EXPECT_EQ(members(units, set), std::set<UnitId>(all.begin(), all.end()));
  set = units.join(set, all[1]);  // already in it
  EXPECT_EQ(members(units, set).size(), 4u);
  set = units.join(set, units.create());
  EXPECT_EQ(members(units, set).size(), 1u);
  EXPECT_EQ(units.live(all[0]), units.live(all[3]));
}

TEST(Units, AnEndedUnitIsInNoSet) {
  Units units;
  const UnitId a = units.create();
  const UnitId b = units.create();
  const UnitSet set = units.join(a, b);
  units.end(a);
  EXPECT_EQ(units.live(a), 0u);
  EXPECT_EQ(members(units, set), std::set<UnitId>{b});
  EXPECT_EQ(units.join(a, b), b);
}

// A running sum over the same two units does not grow without bound.
TEST(Units, JoiningTheSameAgainCostsNothingForEver) {
  Units units(8);
  const UnitId a = units.create();
  const UnitId b = units.create();
  UnitSet set = units.join(a, b);
  for (int i = 0; i < 1000; ++i) set = units.join(set, i % 2 == 0 ? a : b);
  EXPECT_EQ(members(units, set), (std::set<UnitId>{a, b}));
  EXPECT_LT(units.set_bytes(), 1000u);
}

TEST(Units, RenumberingKeepsWhatIsReferredTo) {
  Units units;
  for (int i = 0; i < 1000; ++i) units.create();
  UnitId a = units.create();
  UnitId b = units.create();
  UnitId ended = units.create();
  UnitSet set = units.join(a, b);
  Control control = units.control(7, set, units.control(8, a, 0));
  Witness inside;
  inside.site = 5;
  units.note(b, {inside, {}});
  units.end(ended);
  const std::size_t before = units.unit_bytes();
  units.renumber([&](auto& f) {
    f.unit(a);
    f.unit(ended);
    f.set(set);
    f.control(control);
  });
  EXPECT_LT(units.unit_bytes(), before / 10);
  EXPECT_EQ(ended, 0u);
  EXPECT_EQ(members(units, set).size(), 2u);
  EXPECT_TRUE(members(units, set).contains(a));
  std::vector<UnitSet> conditions;
  units.for_each_condition(control, [&](UnitSet condition) { conditions.push_back(condition); });
  EXPECT_EQ(conditions, (std::vector<UnitSet>{set, a}));
  std::size_t notes = 0;
  units.for_each_live(set, [&](UnitId unit) { notes += units.take_notes(unit).size(); });
  EXPECT_EQ(notes, 1u);
}

TEST(Units, EveryBranchIsInAControlOnce) {
  Units units;
  const UnitId outer = units.create();
  Control control = units.control(1, outer, 0);
  UnitId head = 0;
  UnitId inner = 0;
  for (int i = 0; i < 10; ++i) {  // a loop of two branches: each controls the other's next
    head = units.create();
    inner = units.create();
    control = units.control(2, head, control);
    control = units.control(3, inner, control);
  }
  std::vector<UnitSet> conditions;
  units.for_each_condition(control, [&](UnitSet condition) { conditions.push_back(condition); });
  EXPECT_EQ(conditions, (std::vector<UnitSet>{inner, head, outer}));
}

// ---- cells ----

std::size_t cells_in(Blocks& blocks, Address address, std::uint64_t size) {
  std::size_t count = 0;
  blocks.for_each_cell(address, size, [&](View&) { ++count; });
  return count;
}

TEST(Blocks, APageIsSplitByTheFirstAccessOfHalfAWord) {
  Blocks blocks(4);
  EXPECT_EQ(cells_in(blocks, 0x1000, 16), 2u);
  EXPECT_EQ(cells_in(blocks, 0x1004, 4), 1u);
  EXPECT_EQ(cells_in(blocks, 0x1000, 16), 4u);
  EXPECT_EQ(cells_in(blocks, 0x2000, 16), 2u);      // another page
  EXPECT_EQ(cells_in(blocks, 0x1ff8, 16), 2u + 1);  // across a page's end: 4 + 4 here, 8 there
}

struct Counted {
  std::vector<ThreadId> told;
  View& touch(Blocks& blocks, Address address, ThreadId thread, bool keep = true) {
    View* out = nullptr;
    blocks.for_each_cell(address, 4, [&](View& cell) {
      out = &blocks.own(
          cell, thread, [&](const View& view) { return keep && view.unit != 0; },
          [&](View& view) { told.push_back(static_cast<ThreadId>(view.thread)); },
          [&](const View&) { return calm; });
    });
    return *out;
  }
  // Whether the thread's access tells nobody, and finds its view all the same.
  static bool is_calm(Blocks& blocks, Address address, ThreadId thread, bool writes, UnitId unit) {
    const View* mine = blocks.own_if_calm(*blocks.only_cell(address, 4), thread, writes);
    EXPECT_TRUE(mine == nullptr || mine->unit == unit);
    return mine != nullptr;
  }
  Calm calm = Calm::kNone;
};

TEST(Blocks, EveryThreadHasItsOwnViewAndTheOthersAreTold) {
  Blocks blocks(4);
  Counted counted;
  counted.touch(blocks, 0x10, 1).unit = 11;
  counted.touch(blocks, 0x10, 2).unit = 22;
  EXPECT_EQ(counted.told, (std::vector<ThreadId>{1}));
  counted.touch(blocks, 0x10, 3).unit = 33;
  counted.told.clear();
  EXPECT_EQ(counted.touch(blocks, 0x10, 1).unit, 11u);
  EXPECT_EQ(std::set<ThreadId>(counted.told.begin(), counted.told.end()),
            (std::set<ThreadId>{2, 3}));
  counted.told.clear();
  EXPECT_EQ(counted.touch(blocks, 0x10, 2, false).unit, 22u);  // the others are idle: dropped
  EXPECT_EQ(counted.touch(blocks, 0x10, 1).unit, 0u);
}

TEST(Blocks, WhoHasToldTheOthersNeedNotTellThemAgain) {
  Blocks blocks(4);
  Counted counted;
  counted.touch(blocks, 0x10, 1).unit = 11;
  counted.touch(blocks, 0x14, 1).unit = 11;
  EXPECT_TRUE(Counted::is_calm(blocks, 0x10, 1, true, 11));  // there are no others
  counted.touch(blocks, 0x10, 2).unit = 22;
  EXPECT_FALSE(Counted::is_calm(blocks, 0x10, 2, false, 22));
  counted.calm = Calm::kReads;
  counted.touch(blocks, 0x10, 2);
  EXPECT_TRUE(Counted::is_calm(blocks, 0x10, 2, false, 22));
  EXPECT_FALSE(Counted::is_calm(blocks, 0x10, 2, true, 22));
  EXPECT_FALSE(Counted::is_calm(blocks, 0x10, 1, false, 11));  // it has not told thread 2
  counted.calm = Calm::kAll;
  counted.touch(blocks, 0x10, 1);
  EXPECT_TRUE(Counted::is_calm(blocks, 0x10, 1, true, 11));
  EXPECT_FALSE(Counted::is_calm(blocks, 0x10, 2, false, 22));
}

TEST(Blocks, WhatIsFreedIsForgottenAndItsShadowToo) {
  Blocks blocks(4);
  Counted counted;
  const std::size_t empty = blocks.bytes();
  for (Address at = 0x10000; at < 0x20000; at += 8) counted.touch(blocks, at, 1).unit = 1;
  EXPECT_GT(blocks.bytes(), empty);
  blocks.forget(0x10000, 0x10000);
  EXPECT_EQ(blocks.bytes(), empty);
  counted.touch(blocks, 0x100, 1).unit = 1;
  counted.touch(blocks, 0x104, 1).unit = 1;
  blocks.forget(0x104, 4);
  EXPECT_EQ(counted.touch(blocks, 0x100, 1).unit, 1u);
  EXPECT_EQ(counted.touch(blocks, 0x104, 1).unit, 0u);
  blocks.forget(0, ~0ull);
  EXPECT_EQ(counted.touch(blocks, 0x100, 1).unit, 0u);
}

}  // namespace
}  // namespace heddle::svd
