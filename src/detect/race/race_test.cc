#include "detect/race/race.h"

#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle::race {
namespace {

std::vector<Finding> check(const char* text) {
  const Trace trace = trace_from_text(text);
  RaceDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish();
}

TEST(RaceDetector, NamesBothSidesWithStacksLocksAndVariable) {
  const std::vector<Finding> findings = check(
      "t0: fork t1\n"
      "t0: enter deposit\n"
      "t0: acq m @bank.c:9 in deposit\n"
      "t0: w balance @bank.c:10 in deposit\n"
      "t0: rel m @bank.c:11 in deposit\n"
      "t1: enter audit\n"
      "t1: r balance @bank.c:20 in audit\n");
  ASSERT_EQ(findings.size(), 1u);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.kind, FindingKind::kDataRace);
  EXPECT_EQ(finding.summary, "write – read");
  EXPECT_EQ(finding.variables.at(0).name, "balance");
  EXPECT_EQ(finding.notes.at(0), "1 held m; 2 held no lock.");
  std::vector<std::string> roles;
  roles.reserve(finding.steps.size());
  for (const Step& step : finding.steps) roles.push_back(step.role);
  EXPECT_EQ(roles, (std::vector<std::string>{"", "1", "", "2"}));
  EXPECT_EQ(finding.steps[1].place.line, 10u);
  EXPECT_EQ(finding.steps[1].stack.at(0).function, "deposit");
  EXPECT_EQ(finding.steps[1].locks.at(0).acquired.line, 9u);
  EXPECT_EQ(finding.steps[2].kind, EventKind::kRelease);
  EXPECT_EQ(finding.steps[2].variable.name, "m");
  EXPECT_EQ(finding.steps[3].stack.at(0).function, "audit");
  EXPECT_EQ(finding.fingerprint.size(), 16u);
}

TEST(RaceDetector, OneFindingPerPairOfPlacesAndVariable) {
  const std::vector<Finding> findings = check(
      "t0: w x @a.c:1\n"
      "t1: w x @a.c:2\n"
      "t0: w x @a.c:1\n"
      "t1: w x @a.c:2\n"
      "t0: w y @a.c:1\n"
      "t1: w y @a.c:2\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].count, 3u);
  EXPECT_EQ(findings[1].count, 1u);
}

TEST(RaceDetector, AConsequenceOfAnotherRaceIsSaidToBeOne) {
  const std::vector<Finding> findings =
      check("t0: w data @a.c:1\nt0: w flag @a.c:2\nt1: r flag @a.c:3\nt1: w data @a.c:4\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].variables[0].name, "flag");
  EXPECT_LT(findings[1].rank, findings[0].rank);
  EXPECT_NE(findings[1].notes.back().find("`flag`"), std::string::npos);
}

TEST(RaceDetector, AFreedBlockIsNamedByItsAllocation) {
  const std::vector<Finding> findings = check(
      "t0: alloc h:16 @a.c:1\n"
      "t0: fork t1\n"
      "t1: r h @a.c:2\n"
      "t0: free h @a.c:3\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].summary, "read – free");
}

}  // namespace
}  // namespace heddle::race
