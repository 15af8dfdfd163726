#include "detect/avio/invariants.h"

#include "detect/avio/invariants_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace heddle::avio {
namespace {

// Learned from a few of six runs, some of which both sides may know with different contents (a
// program that its seed does not determine).
rc::Gen<Invariants> any_invariants() {
  return rc::gen::exec([] {
    Invariants out("app", *rc::gen::inRange<std::uint32_t>(0, 3));
    const int runs = *rc::gen::inRange(0, 5);
    for (int n = 0; n < runs; ++n) {
      const auto id = "run" + std::to_string(*rc::gen::inRange(0, 6));
      RunEvidence evidence;
      for (SiteKey site = 1; site <= 5; ++site) {
        if (*rc::gen::arbitrary<bool>()) {
          evidence.executed[site] = {*rc::gen::element<std::string>("read", "write"), "f",
                                     "a.c:" + std::to_string(*rc::gen::inRange(1, 4)), "x"};
        }
      }
      const int made = *rc::gen::inRange(0, 4);
      for (int k = 0; k < made; ++k) {
        evidence.made.insert({*rc::gen::inRange<SiteKey>(0, 6), *rc::gen::inRange<SiteKey>(1, 6)});
      }
      const int splits = *rc::gen::inRange(0, 4);
      for (int k = 0; k < splits; ++k) {
        evidence.split.insert({*rc::gen::inRange<SiteKey>(0, 6), *rc::gen::inRange<SiteKey>(1, 6)});
      }
      out.add(id, {"build" + std::to_string(*rc::gen::inRange(0, 2)), "./app", "7"}, evidence);
    }
    if (*rc::gen::arbitrary<bool>()) {
      out.add_failed("bad" + std::to_string(*rc::gen::inRange(0, 3)));
    }
    return out;
  });
}

Invariants merged(Invariants a, const Invariants& b) {
  RC_ASSERT(a.merge(b).ok());
  return a;
}

RC_GTEST_PROP(InvariantLaws, MergeIsCommutative, ()) {
  const Invariants a = *any_invariants(), b = *any_invariants();
  RC_ASSERT(merged(a, b) == merged(b, a));
}
RC_GTEST_PROP(InvariantLaws, MergeIsAssociative, ()) {
  const Invariants a = *any_invariants(), b = *any_invariants(), c = *any_invariants();
  RC_ASSERT(merged(merged(a, b), c) == merged(a, merged(b, c)));
}
RC_GTEST_PROP(InvariantLaws, MergeIsIdempotent, ()) {
  const Invariants a = *any_invariants(), b = *any_invariants();
  RC_ASSERT(merged(a, a) == a);
  RC_ASSERT(merged(merged(a, b), b) == merged(a, b));
}
RC_GTEST_PROP(InvariantLaws, NothingIsTheNeutralElement, ()) {
  const Invariants a = *any_invariants();
  RC_ASSERT(merged(a, Invariants("app")) == a);
}
RC_GTEST_PROP(InvariantLaws, MoreRunsNeverRestoreADroppedInvariant, ()) {
  const Invariants a = *any_invariants(), b = *any_invariants();
  RC_PRE(a.threshold() == b.threshold());
  const Invariants both = merged(a, b);
  for (const auto& [key, site] : a.sites()) {
    if (!site.executed.empty() && !a.holds(site)) RC_ASSERT(!both.holds(key));
  }
}
RC_GTEST_PROP(InvariantFile, PrintAndParseAreInverse, ()) {
  const Invariants a = *any_invariants();
  const Result<Invariants> back = parse_invariants(print_invariants(a), "test");
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == a);
}

RunEvidence evidence(std::initializer_list<SiteKey> executed,
                     std::set<std::pair<SiteKey, SiteKey>> split = {},
                     std::set<std::pair<SiteKey, SiteKey>> made = {}) {
  RunEvidence out;
  out.made = std::move(made);
  for (const SiteKey key : executed) out.executed[key] = {"read", "f", "a.c:1:1", "x"};
  out.split = std::move(split);
  return out;
}

TEST(Invariants, HoldWhereExecutedAndNeverSplit) {
  Invariants learned("app");
  learned.add("a", {}, evidence({1, 2}));
  learned.add("b", {}, evidence({1, 2, 3}, {{1, 2}}));
  EXPECT_TRUE(learned.holds(1));
  EXPECT_FALSE(learned.holds(2)) << "split in one run";
  EXPECT_TRUE(learned.holds(3));
  EXPECT_FALSE(learned.holds(4)) << "never executed";
  EXPECT_FALSE(learned.holds(0)) << "the unknown site";
  EXPECT_EQ(learned.invariant_count(), 2u);
  EXPECT_EQ(learned.pair(1, 2).made, 1u);
  EXPECT_EQ(learned.pair(1, 2).split, 1u);
  EXPECT_EQ(learned.pair(1, 3).made, 0u);
}

TEST(Invariants, APairHoldsWhereItsLastAccessDoesNot) {
  Invariants learned("app");
  learned.add("a", {}, evidence({1, 2, 3}, {{1, 3}}, {{1, 3}, {2, 3}}));
  EXPECT_FALSE(learned.holds(3));
  EXPECT_FALSE(learned.holds(learned.pair(1, 3))) << "split";
  EXPECT_TRUE(learned.holds(learned.pair(2, 3))) << "made and not split";
  EXPECT_FALSE(learned.holds(learned.pair(3, 3))) << "never made";
  EXPECT_EQ(learned.pair_count(), 1u);
}

TEST(Invariants, ThresholdCountsRunsNotSplits) {
  Invariants learned("app", 1);
  learned.add("a", {}, evidence({1, 2, 3}, {{1, 3}, {2, 3}}));
  EXPECT_TRUE(learned.holds(3)) << "two pairs, one run";
  learned.add("b", {}, evidence({1, 3}, {{1, 3}}));
  EXPECT_FALSE(learned.holds(3));
}

TEST(Invariants, TheSameRunCountsOnce) {
  Invariants learned("app", 1);
  for (int n = 0; n < 3; ++n) learned.add("a", {}, evidence({1, 2}, {{1, 2}}));
  EXPECT_EQ(learned.runs().size(), 1u);
  EXPECT_TRUE(learned.holds(2));
}

TEST(RunEvidence, IdFollowsFromTheContent) {
  const RunText text{"build", "./app", "7"};
  EXPECT_EQ(evidence({1, 2}).id(text), evidence({1, 2}).id(text));
  EXPECT_NE(evidence({1, 2}).id(text), evidence({1, 3}).id(text));
  EXPECT_NE(evidence({1, 2}).id(text), evidence({1, 2}, {{1, 2}}).id(text));
  EXPECT_NE(evidence({1, 2}).id(text), evidence({1, 2}).id({"build", "./app", "8"}));
}

TEST(Invariants, OfAnotherProgramAreRefused) {
  Invariants a("app");
  const Status status = a.merge(Invariants("other"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("different programs"), std::string::npos);
}

std::string refusal(std::string_view text) {
  const Result<Invariants> out = parse_invariants(text, "app.inv");
  return out.ok() ? "" : out.error().message;
}

TEST(InvariantFile, IsRefusedWithAReason) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("hello\n").find("not a file of learned invariants"), std::string::npos);
  EXPECT_NE(refusal("{\"heddle\":\"invariants\",\"version\":0}\n").find("format 0"),
            std::string::npos);
  EXPECT_NE(refusal("{\"heddle\":\"invariants\",\"version\":1}\n").find("format 1"),
            std::string::npos)
      << "older";
  EXPECT_NE(refusal("{\"heddle\":\"invariants\",\"version\":3}\n").find("format 3"),
            std::string::npos);
  const std::string head = "{\"heddle\":\"invariants\",\"version\":2,\"program\":\"app\"}\n";
  EXPECT_NE(refusal(head + "{\"run\":\"a\"}\n{\"site\":\"01\",\"executed\":\"0-1\"}\n")
                .find("app.inv:3: damaged"),
            std::string::npos);
  EXPECT_NE(refusal(head + "{\"run\":\"a\"").find("app.inv:2: damaged"), std::string::npos);
  EXPECT_EQ(refusal(head + "{\"run\":\"a\"}\n{\"site\":\"01\",\"executed\":\"0\"}\n"), "");
}

TEST(InvariantFile, UnknownLinesAreSkipped) {
  EXPECT_EQ(refusal("{\"heddle\":\"invariants\",\"version\":2}\n{\"later\":1}\n"), "");
}

}  // namespace
}  // namespace heddle::avio
