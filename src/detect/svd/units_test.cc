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
  Control control = units.control(0, 7, set, units.control(0, 8, a, 0));
  units.note(b, 0, {5, 6, 0x10, 0});
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
  units.for_each_live(
      set, [&](UnitId unit) { units.take_notes(unit, [&](const Overwrite&) { ++notes; }); });
  EXPECT_EQ(notes, 1u);
  EXPECT_FALSE(units.any_noted());
}

TEST(Units, WeakReferencesAloneAreNobodys) {
  Units units;
  UnitId strong = units.create();
  UnitId same = strong;
  UnitId weak = units.create();
  UnitId ended = units.create();
  units.note(weak, 0, {5, 6, 0x10, 0});
  units.end(ended);
  units.renumber([&](auto& f) {
    f.unit(strong);
    f.weak(same);
    f.weak(weak);
    f.weak(ended);
  });
  EXPECT_EQ(same, strong);
  EXPECT_EQ(weak, kNobody);
  EXPECT_EQ(ended, 0u);
  EXPECT_FALSE(units.any_noted());
}

TEST(Units, AUnitKeepsSoManyNotesInTheirOrder) {
  Units units(32, 3);
  const UnitId a = units.create();
  const UnitId b = units.create();
  units.note(b, 0, {1, 100, 0, 0});
  units.note(b, 0, {2, 100, 0, 0});
  units.note(b, 0, {1, 100, 0, 0});  // the same pair, in another block
  units.note(a, 0, {3, 101, 0, 0});
  units.note(a, 0, {4, 102, 0, 0});
  const auto taken = [&](UnitId unit) {
    std::vector<AccessRef> out;
    units.take_notes(unit, [&](const Overwrite& note) { out.push_back(note.inside); });
    return out;
  };
  EXPECT_EQ(units.merge(a, b), a);
  EXPECT_EQ(taken(a), (std::vector<AccessRef>{3, 4, 1}));
  EXPECT_FALSE(units.noted(a));
  for (AccessRef i = 0; i < 5; ++i) units.note(a, 0, {i, 200 + i, 0, 0});
  EXPECT_EQ(taken(a), (std::vector<AccessRef>{0, 1, 2}));
}

TEST(Units, EveryBranchIsInAControlOnce) {
  Units units;
  const UnitId outer = units.create();
  Control control = units.control(0, 1, outer, 0);
  UnitId head = 0;
  UnitId inner = 0;
  for (int i = 0; i < 10; ++i) {  // a loop of two branches: each controls the other's next
    head = units.create();
    inner = units.create();
    control = units.control(0, 2, head, control);
    control = units.control(0, 3, inner, control);
  }
  std::vector<UnitSet> conditions;
  units.for_each_condition(control, [&](UnitSet condition) { conditions.push_back(condition); });
  EXPECT_EQ(conditions, (std::vector<UnitSet>{inner, head, outer}));
}

// ---- cells ----

std::size_t cells_in(Blocks& blocks, Address address, std::uint64_t size) {
  std::size_t count = 0;
  blocks.for_each_run(1, address, size, [&](const Blocks::Run& run) { count += run.count; });
  return count;
}

// With every width of their codes, each border from both sides, and split in the end.
void accesses_are_what_was_set(std::size_t cells, std::uint64_t count) {
  const std::vector<AccessRef> steps = {1,
                                        3,
                                        4095,
                                        4096,
                                        4097,
                                        (1ull << 27) - 1,
                                        1ull << 27,
                                        (1ull << 27) + 1,
                                        5ull << kOrdinalBits,
                                        1ull << 63};
  for (const AccessRef step : steps) {
    for (const AccessRef stretch : {1, 7, 1000}) {  // cells in a row that are near each other
      PagePool pool;
      Accesses accesses(cells, stretch == 7, pool);
      std::vector<AccessRef> expected(cells, 0);
      AccessRef access = 1ull << kOrdinalBits;
      for (std::uint64_t i = 0; i < count; ++i) {
        access += (i + 1) % stretch == 0 ? step : 1;
        const std::uint64_t cell = i * 13 % (cells - 1);  // the last one stays without
        accesses.set(cell, access);
        expected[cell] = access;
        for (std::uint64_t k = 0; k < cells; ++k) {
          ASSERT_EQ(accesses[k], expected[k]) << "step " << step << " stretch " << stretch;
        }
      }
      const Accesses split = accesses.split(2, pool);
      for (std::uint64_t k = 0; k < 2 * cells; ++k) EXPECT_EQ(split[k], expected[k / 2]);
    }
  }
}

TEST(Accesses, AreWhatWasSet) {
  accesses_are_what_was_set(64, 640);
}
TEST(Accesses, ThatFillAPageAreWhatWasSet) {
  accesses_are_what_was_set(2048, 100);
}
TEST(Accesses, ThatFillAPageWhenTheyAreSplitAreWhatWasSet) {
  accesses_are_what_was_set(1024, 50);
}

TEST(PagePool, APageThatComesBackIsZeroAgain) {
  PagePool pool;
  auto* const first = static_cast<std::uint64_t*>(pool.take());
  auto* const second = static_cast<std::uint64_t*>(pool.take());
  EXPECT_NE(first, second);
  first[0] = first[PagePool::kBytes / 8 - 1] = 7;
  second[0] = 8;
  pool.give_back(first);
  EXPECT_EQ(second[0], 8u);
  auto* const again = static_cast<std::uint64_t*>(pool.take());
  EXPECT_EQ(again, first);
  EXPECT_EQ(again[0] + again[PagePool::kBytes / 8 - 1], 0u);
}

TEST(Blocks, APageIsSplitByTheFirstAccessOfHalfAWord) {
  Blocks blocks(4);
  EXPECT_EQ(cells_in(blocks, 0x1000, 16), 2u);
  EXPECT_EQ(cells_in(blocks, 0x1004, 4), 1u);
  EXPECT_EQ(cells_in(blocks, 0x1000, 16), 4u);
  EXPECT_EQ(cells_in(blocks, 0x2000, 16), 2u);      // another page
  EXPECT_EQ(cells_in(blocks, 0x1ff8, 16), 2u + 1);  // across a page's end: 4 + 4 here, 8 there
}

// The cell of the block at `address` and what the thread knows of its page.
Blocks::Run at(Blocks& blocks, ThreadId thread, Address address) {
  Blocks::Run out;
  blocks.for_each_run(thread, address, 4, [&](const Blocks::Run& run) { out = run; });
  return out;
}
Cell& cell(Blocks& blocks, ThreadId thread, Address address) {
  const Blocks::Run run = at(blocks, thread, address);
  return run.near->cells[run.first];
}
bool is_calm(Blocks& blocks, ThreadId thread, Address address, bool writes) {
  const Blocks::Run run = at(blocks, thread, address);
  return run.near->is_calm(run.first, writes);
}
void set_calm(Blocks& blocks, ThreadId thread, Address address, Calm calm) {
  const Blocks::Run run = at(blocks, thread, address);
  Blocks::tell_others(*run.near, run.first,
                      [&](const Cell&, const Blocks::Plane&) { return calm; });
}

TEST(Blocks, EveryThreadHasItsOwnCell) {
  Blocks blocks(4);
  cell(blocks, 1, 0x10).unit = 11;
  cell(blocks, 2, 0x10).unit = 22;
  cell(blocks, 3, 0x14).unit = 33;
  EXPECT_EQ(cell(blocks, 1, 0x10).unit, 11u);
  EXPECT_EQ(cell(blocks, 2, 0x10).unit, 22u);
  EXPECT_EQ(cell(blocks, 3, 0x10).unit, 0u);
  EXPECT_EQ(cell(blocks, 3, 0x14).unit, 33u);
  EXPECT_EQ(at(blocks, 1, 0x10).near->page->planes.size(), 3u);
  blocks.drop(2);
  blocks.shrink();
  EXPECT_EQ(at(blocks, 1, 0x10).near->page->planes.size(), 2u);
  EXPECT_EQ(cell(blocks, 3, 0x14).unit, 33u);
  cell(blocks, 3, 0x14) = Cell();
  blocks.shrink();
  EXPECT_EQ(at(blocks, 1, 0x10).near->page->planes.size(), 1u);
}

TEST(Blocks, WhoHasToldTheOthersNeedNotTellThemAgain) {
  Blocks blocks(4);
  cell(blocks, 1, 0x10).unit = 11;
  EXPECT_TRUE(is_calm(blocks, 1, 0x10, true));  // there are no others
  cell(blocks, 2, 0x10).unit = 22;
  EXPECT_FALSE(is_calm(blocks, 2, 0x10, false));
  EXPECT_FALSE(is_calm(blocks, 1, 0x10, false));
  set_calm(blocks, 2, 0x10, Calm::kReads);
  EXPECT_TRUE(is_calm(blocks, 2, 0x10, false));
  EXPECT_FALSE(is_calm(blocks, 2, 0x10, true));
  EXPECT_FALSE(is_calm(blocks, 1, 0x10, false));  // it has not told thread 2
  set_calm(blocks, 1, 0x10, Calm::kAll);
  EXPECT_TRUE(is_calm(blocks, 1, 0x10, true));
  EXPECT_FALSE(is_calm(blocks, 2, 0x10, false));
  cell(blocks, 3, 0x10).unit = 33;
  EXPECT_TRUE(is_calm(blocks, 1, 0x10, true));  // until thread 3 has told the others
  set_calm(blocks, 3, 0x10, Calm::kNone);
  EXPECT_FALSE(is_calm(blocks, 1, 0x10, true));
  // However many they are, none takes another's calm for its own.
  for (ThreadId thread = 4; thread < 200; ++thread) {
    cell(blocks, thread, 0x10).unit = 1;
    set_calm(blocks, thread, 0x10, Calm::kAll);
    EXPECT_TRUE(is_calm(blocks, thread, 0x10, true)) << thread;
    EXPECT_FALSE(is_calm(blocks, thread - 1, 0x10, false));
  }
}

TEST(Blocks, WhatIsFreedIsForgottenAndItsShadowToo) {
  Blocks blocks(4);
  const std::size_t empty = blocks.bytes();
  for (Address at = 0x10000; at < 0x20000; at += 8) cell(blocks, 1, at).unit = 1;
  EXPECT_GT(blocks.bytes(), empty);
  blocks.forget(0x10000, 0x10000);
  EXPECT_EQ(blocks.bytes(), empty);
  cell(blocks, 1, 0x100).unit = 1;
  cell(blocks, 1, 0x104).unit = 1;
  blocks.forget(0x104, 4);
  EXPECT_EQ(cell(blocks, 1, 0x100).unit, 1u);
  EXPECT_EQ(cell(blocks, 1, 0x104).unit, 0u);
  blocks.forget(0, ~0ull);
  EXPECT_EQ(cell(blocks, 1, 0x100).unit, 0u);
}

}  // namespace
}  // namespace heddle::svd
