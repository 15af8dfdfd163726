#include "detect/serializability/serializability.h"

#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle::serializability {
namespace {

std::vector<Finding> check(const char* text) {
  const Trace trace = trace_from_text(text);
  SerializabilityDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish();
}

TEST(SerializabilityDetector, TellsTheCycleEventByEvent) {
  const std::vector<Finding> findings = check(
      "t1: begin\n"
      "t1: r stock @shop.c:3\n"
      "t2: w stock @shop.c:9\n"
      "t1: w stock @shop.c:4\n"
      "t1: end\n");
  ASSERT_EQ(findings.size(), 1u);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.summary, "2 transactions in a cycle");
  ASSERT_EQ(finding.variables.size(), 1u);
  EXPECT_EQ(finding.variables[0].name, "stock");
  ASSERT_EQ(finding.steps.size(), 3u);
  EXPECT_EQ(finding.steps[0].role, "A");
  EXPECT_EQ(finding.steps[1].role, "B");
  EXPECT_EQ(finding.steps[2].role, "A");
  EXPECT_EQ(finding.steps[2].place.line, 4u);
  EXPECT_EQ(finding.notes.at(0),
            "A before B: thread 1 reads stock (event 1), then thread 2 writes it (event 2).");
}

TEST(SerializabilityDetector, ProgramOrderBetweenTransactionsIsPartOfTheWitness) {
  const std::vector<Finding> findings = check(
      "t1: begin\nt1: w x @a.c:1\nt2: r x @a.c:2\nt2: begin\nt2: w y @a.c:3\nt2: end\n"
      "t1: r y @a.c:4\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].summary, "3 transactions in a cycle");
  EXPECT_EQ(findings[0].notes.at(1), "B before C: program order of thread 2.");
}

TEST(SerializabilityDetector, TheSamePlaceIsCounted) {
  const std::vector<Finding> findings = check(
      "t1: begin\nt1: r x @a.c:1\nt2: w x @a.c:2\nt1: w x @a.c:3\nt1: end\n"
      "t1: begin\nt1: r x @a.c:1\nt2: w x @a.c:2\nt1: w x @a.c:3\nt1: end\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].count, 2u);
}

}  // namespace
}  // namespace heddle::serializability
