#include "finding/merge.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

struct Marked {
  const char* role;
  std::uint32_t line;
};

Finding finding(const char* detector, FindingKind kind, double rank, Address address,
                const std::vector<Marked>& steps) {
  Finding out;
  out.kind = kind;
  out.detectors = {detector};
  out.rank = rank;
  out.in_words = "in words";
  out.variables = {
      {.name = "x", .storage = "global", .declared = {}, .address = address, .size = 4}};
  for (const Marked& marked : steps) {
    Step step;
    step.role = marked.role;
    step.place = {.function = "f", .file = "a.c", .line = marked.line, .column = 1};
    out.steps.push_back(step);
  }
  return out;
}

constexpr auto kTriple = FindingKind::kAtomicityViolation;
constexpr auto kRace = FindingKind::kDataRace;

TEST(Merge, ARaceOfTwoOfATriplesPlacesIsPartOfTheTriple) {
  const std::vector<Finding> merged =
      merge_findings({finding("race", kRace, 0.8, 100, {{"1", 3}, {"2", 7}}),
                      finding("avio", kTriple, 0.1, 100, {{"P", 3}, {"R", 7}, {"I", 4}})});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].kind, kTriple);
  EXPECT_EQ(merged[0].steps.size(), 3u);
  EXPECT_EQ(merged[0].detectors, (std::vector<std::string>{"avio", "race"}));
  EXPECT_EQ(merged[0].rank, 0.8);
  ASSERT_EQ(merged[0].notes.size(), 1u);
  EXPECT_EQ(merged[0].notes[0], "race: P and R are a data race.");
}

TEST(Merge, TheStrongerLabelStays) {
  Finding unlearned = finding("avio", kTriple, 0.1, 100, {{"P", 3}, {"R", 7}, {"I", 4}});
  unlearned.label = FindingLabel::kUnlearned;
  const std::vector<Finding> merged = merge_findings(
      {unlearned, finding("svd", kTriple, 0.5, 102, {{"P", 3}, {"R", 7}, {"I", 4}})});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].label, FindingLabel::kObserved);
  EXPECT_EQ(merged[0].detectors, (std::vector<std::string>{"avio", "svd"}));
}

TEST(Merge, OtherMemoryOtherPlacesAndTheSameDetectorStayApart) {
  const Finding triple = finding("avio", kTriple, 0.5, 100, {{"P", 3}, {"R", 7}, {"I", 4}});
  EXPECT_EQ(merge_findings({triple, finding("race", kRace, 0.8, 104, {{"1", 3}, {"2", 7}})}).size(),
            2u);
  EXPECT_EQ(merge_findings({triple, finding("race", kRace, 0.8, 100, {{"1", 3}, {"2", 8}})}).size(),
            2u);
  EXPECT_EQ(
      merge_findings({triple, finding("avio", kTriple, 0.8, 100, {{"P", 3}, {"R", 7}})}).size(),
      2u);
}

TEST(Merge, OneStatementOfSeveralAccessesIsOneFinding) {
  const auto part = [](Address address, const char* name, std::uint64_t count) {
    Finding out = finding("avio", kTriple, 0.5, address, {{"P", 3}, {"R", 7}, {"I", 3}});
    out.variables[0].name = name;
    out.count = count;
    return out;
  };
  const auto race = [](Address address) {
    return finding("race", kRace, 0.8, address, {{"1", 3}, {"2", 7}});
  };
  const std::vector<Finding> merged = merge_findings(
      {part(100, "g.a", 2), race(100), part(104, "g.b", 3), race(104), part(100, "g.a", 1)});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].count, 3u);
  EXPECT_EQ(merged[0].notes.size(), 1u);
  ASSERT_EQ(merged[0].variables.size(), 2u);
  EXPECT_EQ(merged[0].variables[0].name, "g.a");
  EXPECT_EQ(merged[0].variables[1].name, "g.b");
}

TEST(Merge, OtherCasesKindsAndUnknownPlacesStayApart) {
  const Finding triple = finding("avio", kTriple, 0.5, 100, {{"P", 3}, {"R", 7}, {"I", 4}});
  Finding other_case = triple;
  other_case.summary = "another";
  EXPECT_EQ(merge_findings({triple, other_case}).size(), 2u);
  Finding other_access = triple;
  other_access.steps[1].kind = EventKind::kRmw;
  EXPECT_EQ(merge_findings({triple, other_access}).size(), 2u);
  Finding nowhere = triple;
  for (Step& step : nowhere.steps) step.place = {};
  EXPECT_EQ(merge_findings({nowhere, nowhere}).size(), 2u);
}

TEST(Merge, FindingsAboutNoMemoryStayAlone) {
  Finding deadlock;
  deadlock.kind = FindingKind::kDeadlock;
  deadlock.detectors = {"control"};
  Finding hang = deadlock;
  hang.detectors = {"watchdog"};
  EXPECT_EQ(merge_findings({deadlock, hang}).size(), 2u);
}

TEST(Merge, HighestRankFirstAndEqualsInTheirOrder) {
  std::vector<Finding> findings{finding("a", kRace, 0.2, 100, {{"1", 1}}),
                                finding("b", kRace, 0.9, 200, {{"1", 2}}),
                                finding("c", kRace, 0.2, 300, {{"1", 3}})};
  std::string order;
  for (const Finding& f : merge_findings(findings)) order += f.detectors[0];
  EXPECT_EQ(order, "bac");
}

}  // namespace
}  // namespace heddle
