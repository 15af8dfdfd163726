#include "table/marks.h"

#include <gtest/gtest.h>

namespace heddle::table {
namespace {

constexpr const char* kSource =
    "int x;\n"
    "void f() {\n"
    "  int y = x;  // heddle: P\n"
    "  x = y + 1;  // heddle: R I\n"
    "  log(y);     // heddle: bug\n"
    "}\n";

Step at(const char* role, const char* file, std::uint32_t line) {
  Step out;
  out.role = role;
  out.place.file = file;
  out.place.line = line;
  return out;
}

Finding finding(const char* detector, std::vector<Step> steps) {
  Finding out;
  out.detectors = {detector};
  out.steps = std::move(steps);
  return out;
}

TEST(Marks, AreReadWithTheirLines) {
  const Marks marks = Marks::parse(kSource, "f.cc");
  ASSERT_EQ(marks.lines().size(), 3u);
  EXPECT_EQ(marks.lines().at(3), (std::set<std::string>{"P"}));
  EXPECT_EQ(marks.lines().at(4), (std::set<std::string>{"R", "I"}));
  EXPECT_EQ(marks.lines().at(5), (std::set<std::string>{"bug"}));
}

TEST(Marks, ATripleNeedsEachLineInItsRole) {
  const Marks marks = Marks::parse(kSource, "f.cc");
  const Step p = at("P", "/src/f.cc", 3), r = at("R", "/src/f.cc", 4), i = at("I", "/src/f.cc", 4);
  EXPECT_TRUE(marks.is_the_bug(finding("avio", {p, at("", "/src/f.cc", 1), r, i})));
  EXPECT_FALSE(marks.is_the_bug(finding("avio", {at("P", "/src/f.cc", 4), r, i})));
  EXPECT_FALSE(marks.is_the_bug(finding("avio-h", {p, at("R", "/src/f.cc", 5), i})));
  EXPECT_FALSE(marks.is_the_bug(finding("avio", {p, at("R", "/src/g.cc", 4), i})));
}

TEST(Marks, AnyOtherFindingNeedsMarkedLines) {
  const Marks marks = Marks::parse(kSource, "f.cc");
  const Step one = at("1", "f.cc", 3), two = at("2", "f.cc", 5);
  EXPECT_TRUE(marks.is_the_bug(finding("race", {one, two})));
  EXPECT_FALSE(marks.is_the_bug(finding("race", {one, at("2", "f.cc", 6)})));
  EXPECT_FALSE(marks.is_the_bug(finding("race", {})));
}

TEST(Marks, OfAVariableWithoutALockTheAccessThatShowedItCounts) {
  const Marks marks = Marks::parse(kSource, "f.cc");
  Finding lockset = finding("lockset", {at("1", "f.cc", 1), at("2", "f.cc", 4)});
  lockset.kind = FindingKind::kInconsistentLocking;
  EXPECT_TRUE(marks.is_the_bug(lockset));
  lockset.steps = {at("1", "f.cc", 4), at("2", "f.cc", 1)};
  EXPECT_FALSE(marks.is_the_bug(lockset));
}

TEST(Identity, IgnoresWhatChangesFromRunToRun) {
  Finding one = finding("race", {at("1", "f.cc", 3), at("2", "f.cc", 4)});
  Finding same = one;
  same.steps[0].thread = 7;
  same.steps[0].ordinal = 99;
  same.count = 12;
  EXPECT_EQ(identity(one), identity(same));
  same.steps[1].place.column = 2;
  EXPECT_NE(identity(one), identity(same));
}

}  // namespace
}  // namespace heddle::table
