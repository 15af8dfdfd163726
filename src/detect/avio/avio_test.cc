#include "detect/avio/avio.h"

#include "trace/text.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

std::vector<Finding> check(std::string_view text, Options options = {}) {
  const Trace trace = trace_from_text(text);
  Avio avio(trace.catalog, options);
  avio.on(trace.events, 0);
  return avio.finish();
}

// The cases of all findings, in their order: "R–W–R" is written RWR.
std::string cases(std::string_view text, Options options = {}) {
  std::string out;
  for (const Finding& finding : check(text, options)) {
    if (!out.empty()) out += ' ';
    if (finding.summary == summary(SplitCase::kReadWriteRead)) out += "RWR";
    if (finding.summary == summary(SplitCase::kWriteWriteRead)) out += "WWR";
    if (finding.summary == summary(SplitCase::kWriteReadWrite)) out += "WRW";
    if (finding.summary == summary(SplitCase::kReadWriteWrite)) out += "RWW";
  }
  return out;
}

const Step& role(const Finding& finding, std::string_view name) {
  for (const Step& step : finding.steps) {
    if (step.role == name) return step;
  }
  ADD_FAILURE() << "no step " << name;
  return finding.steps.front();
}

// Table 1 of the paper.
TEST(AvioTable1, Case0ReadReadReadIsSerializable) {
  EXPECT_EQ(cases("t1: r x @P\n t2: r x @R\n t1: r x @I\n"), "");
}
TEST(AvioTable1, Case1WriteReadReadIsSerializable) {
  EXPECT_EQ(cases("t1: w x @P\n t2: r x @R\n t1: r x @I\n"), "");
}
TEST(AvioTable1, Case2ReadWriteRead) {
  EXPECT_EQ(cases("t1: r x @P\n t2: w x @R\n t1: r x @I\n"), "RWR");
}
TEST(AvioTable1, Case3WriteWriteRead) {
  EXPECT_EQ(cases("t1: w x @P\n t2: w x @R\n t1: r x @I\n"), "WWR");
}
TEST(AvioTable1, Case4ReadReadWriteIsSerializable) {
  EXPECT_EQ(cases("t1: r x @P\n t2: r x @R\n t1: w x @I\n"), "");
}
TEST(AvioTable1, Case5WriteReadWrite) {
  EXPECT_EQ(cases("t1: w x @P\n t2: r x @R\n t1: w x @I\n"), "WRW");
}
TEST(AvioTable1, Case6ReadWriteWrite) {
  EXPECT_EQ(cases("t1: r x @P\n t2: w x @R\n t1: w x @I\n"), "RWW");
}
TEST(AvioTable1, Case7WriteWriteWriteIsSerializable) {
  EXPECT_EQ(cases("t1: w x @P\n t2: w x @R\n t1: w x @I\n"), "");
}

// Section 2.2: any number of remote accesses in between.
TEST(AvioSeveralRemote, OneRemoteWriteAmongReadsIsEnough) {
  const auto findings = check(
      "t1: r x @P\n t2: r x @r1\n t3: w x @first\n t2: w x @last\n t3: r x @r2\n t1: r x @I\n");
  ASSERT_EQ(findings.size(), 3u);  // the pairs of t2 and t3 are split as well
  for (const Finding& finding : findings) {
    if (role(finding, "I").thread != 1) continue;
    EXPECT_EQ(role(finding, "R").place.file, "last") << "the last remote write is reported";
  }
}
TEST(AvioSeveralRemote, TwoWritesAreSplitOnlyIfTheFirstRemoteAccessIsARead) {
  EXPECT_EQ(cases("t1: w x @P\n t2: w x @a\n t3: r x @b\n t1: w x @I\n"), "");
  EXPECT_EQ(cases("t1: w x @P\n t2: r x @a\n t3: w x @b\n t1: w x @I\n"), "WRW");
}
TEST(AvioSeveralRemote, TheFirstRemoteReadIsReported) {
  const auto findings = check("t1: w x @P\n t2: r x @a\n t3: r x @b\n t1: w x @I\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(role(findings[0], "R").place.file, "a");
}
TEST(AvioSeveralRemote, AnAccessOfTheSameThreadMakesANewPair) {
  EXPECT_EQ(cases("t1: r x @a\n t2: w x @R\n t1: w x @b\n t1: r x @c\n"), "RWW");
}

TEST(AvioRmw, IsAReadAndThenAWrite) {
  EXPECT_EQ(cases("t1: r x @P\n t2: rmw x @R\n t1: r x @I\n"), "RWR");
  EXPECT_EQ(cases("t1: w x @P\n t2: rmw x @R\n t1: w x @I\n"), "WRW");
  EXPECT_EQ(cases("t1: w x @P\n t2: r x @R\n t1: rmw x @I\n"), "") << "as I its read decides";
  EXPECT_EQ(cases("t1: rmw x @P\n t2: r x @R\n t1: w x @I\n"), "WRW") << "as P its write does";
  EXPECT_EQ(cases("t1: rmw x @P\n t2: rmw x @R\n t1: rmw x @I\n"), "WWR");
}

TEST(AvioBytes, NeighboursInOneWordAreDifferentLocations) {
  const std::string_view text = "t1: r x+0:1 @P\n t2: w x+1:1 @R\n t1: r x+0:1 @I\n";
  EXPECT_EQ(cases(text), "");
  EXPECT_EQ(cases(text, {.granule = 2}), "RWR");
  EXPECT_EQ(cases("t1: r x+0:4 @P\n t2: w x+4:4 @R\n t1: r x+0:4 @I\n", {.granule = 4}), "");
  EXPECT_EQ(cases("t1: r x+0:4 @P\n t2: w x+4:4 @R\n t1: r x+0:4 @I\n", {.granule = 8}), "RWR");
}
TEST(AvioBytes, LinesAreSharedFalsely) {
  const std::string_view text =
      "var a 0x1000:8\nvar b 0x1038:8\nvar c 0x1040:8\n"
      "t1: r a @P\n t2: w b @R\n t1: r a @I\n"
      "t1: r a @P\n t2: w c @R\n t1: r a @I\n";
  const auto findings = check(text, {.granule = 64});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].count, 1u);
  EXPECT_EQ(cases(text, {.granule = 8}), "");
}
TEST(AvioBytes, OverlappingSizesMeet) {
  EXPECT_EQ(cases("t1: r x+0:8 @P\n t2: w x+3:1 @R\n t1: r x+2:2 @I\n"), "RWR");
  EXPECT_EQ(cases("t1: r x+0:8 @P\n t2: w x+3:1 @R\n t1: r x+4:4 @I\n"), "");
}
TEST(AvioBytes, OneInstanceHoweverManyBytes) {
  const auto findings =
      check("t1: r x:100 @P\n t2: w x:100 @R\n t1: r x:100 @I\n t2: w x:100 @R\n t1: r x:100 @I\n");
  ASSERT_EQ(findings.size(), 3u);  // P–R–I, R–I–R and I–R–I
  for (const Finding& finding : findings) EXPECT_EQ(finding.count, 1u);
}

TEST(AvioFresh, FreedMemoryStartsAfresh) {
  EXPECT_EQ(cases("t1: alloc 0x1000:16\n t1: r 0x1000:4 @P\n t1: free 0x1000:16\n"
                  "t2: alloc 0x1000:16\n t2: w 0x1000:4 @R\n t2: free 0x1000\n"
                  "t1: alloc 0x1000:16\n t1: r 0x1000:4 @I\n"),
            "");
}
TEST(AvioFresh, AThreadThatBeginsAgainStartsAfresh) {
  EXPECT_EQ(cases("t1: r x @P\n t1: thread.end\n t2: w x @R\n t1: thread.begin t0\n t1: r x @I\n"),
            "");
}

constexpr std::string_view kShop = R"(
var stock 0x1000:4 @shop.cc:6
var m 0x2000:40
thread t1 worker
t1: acq m @shop.cc:11 in sell
t1: r stock = 1 @shop.cc:12 in sell
t1: rel m @shop.cc:13 in sell
t2: acq m @shop.cc:14 in sell
t2: w stock = 0 @shop.cc:15 in sell
t2: rel m @shop.cc:16 in sell
t1: acq m @shop.cc:14 in sell
t1: r stock = 0 @shop.cc:15 in sell
t1: w stock = -1 @shop.cc:15 in sell
t1: rel m @shop.cc:16 in sell
)";

TEST(AvioFinding, SaysWhoDidWhatWhereUnderWhichLocks) {
  const auto findings = check(kShop);
  ASSERT_EQ(findings.size(), 1u);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.summary, "read – write – read");
  EXPECT_EQ(finding.in_words, "read twice, written in between");
  EXPECT_EQ(finding.variables.at(0).name, "stock");
  EXPECT_EQ(finding.label, FindingLabel::kUnlearned);
  ASSERT_EQ(finding.steps.size(), 4u);
  EXPECT_EQ(finding.steps[0].role, "P");
  EXPECT_EQ(finding.steps[0].thread_name, "worker");
  EXPECT_EQ(finding.steps[0].place.line, 12u);
  EXPECT_EQ(finding.steps[0].value, 1u);
  EXPECT_EQ(finding.steps[1].note, "lets go of m");
  EXPECT_EQ(finding.steps[1].place.line, 13u);
  EXPECT_EQ(finding.steps[2].role, "R");
  EXPECT_EQ(finding.steps[2].locks.at(0).name, "m");
  EXPECT_EQ(finding.steps[3].role, "I");
  EXPECT_EQ(finding.steps[3].value, 0u);
  EXPECT_EQ(finding.notes.at(0),
            "P, R and I each held m; thread 1 let go of m (shop.cc:13) between P and I.");
}

TEST(AvioFinding, NamesARemoteAccessThatTookNoLock) {
  const auto findings =
      check("t1: acq m @1\n t1: r x @2\n t2: w x @9\n t1: w x @3\n t1: rel m @4\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].notes.at(0),
            "P and I held m, R held no lock; thread 1 held it from P to I, so R must be made to "
            "take it.");
}

TEST(AvioFinding, StacksAreThoseOfTheAccesses) {
  const auto findings = check(
      "t1: enter f @1\n t1: r x @2 in f\n t1: enter g @3 in f\n t2: w x @9\n"
      "t1: r x @4 in g\n t1: leave g\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(role(findings[0], "P").stack.size(), 1u);
  ASSERT_EQ(role(findings[0], "I").stack.size(), 2u);
  EXPECT_EQ(role(findings[0], "I").stack[0].function, "g");
  EXPECT_EQ(role(findings[0], "I").stack[1].line, 3u) << "where g was called";
}

TEST(AvioFinding, IsUniqueBySitesAndCountsInstances) {
  std::string text;
  for (int n = 0; n < 5; ++n) text += "t1: r x @P\n t2: w x @R\n t1: r x @I\n";
  const auto findings = check(text);
  std::uint64_t count = 0;
  for (const Finding& finding : findings) {
    if (role(finding, "P").place.file == "P" && role(finding, "I").place.file == "I")
      count = finding.count;
  }
  EXPECT_EQ(count, 5u);
}

// ---- learning

RunEvidence evidence(std::string_view text) {
  const Trace trace = trace_from_text(text);
  Avio avio(trace.catalog, {.learn = true});
  avio.on(trace.events, 0);
  return avio.evidence();
}

Invariants learned_from(const std::vector<std::string_view>& runs, std::uint32_t threshold = 0) {
  Invariants out("app", threshold);
  for (std::size_t n = 0; n < runs.size(); ++n)
    out.add("run" + std::to_string(n), {}, evidence(runs[n]));
  return out;
}

constexpr std::string_view kWhole = "t1: r x @P\n t1: w x @I\n t2: w x @R\n";
constexpr std::string_view kSplit = "t1: r x @P\n t2: w x @R\n t1: w x @I\n";

TEST(AvioLearned, AViolationOfWhatPassingRunsKeptIsReported) {
  const Invariants learned = learned_from({kWhole, kWhole, kWhole});
  const auto findings = check(kSplit, {.invariants = &learned});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].label, FindingLabel::kObserved);
  EXPECT_GT(findings[0].rank, check(kSplit).at(0).rank);
  EXPECT_EQ(findings[0].notes.at(0), "P and I were never split in 3 passing runs.");
}
TEST(AvioLearned, WhatAPassingRunSplitIsNoInvariant) {
  const Invariants learned = learned_from({kWhole, kSplit, kWhole});
  EXPECT_EQ(check(kSplit, {.invariants = &learned}).size(), 0u);
}
TEST(AvioLearned, TheThresholdToleratesMislabelledRuns) {
  const Invariants learned = learned_from({kWhole, kSplit, kWhole}, 1);
  EXPECT_EQ(check(kSplit, {.invariants = &learned}).size(), 1u);
}
// A loop over all marks is split where the marks are others', never where it set its own.
TEST(AvioLearned, APairIsKeptWhereItsLastAccessIsSplitAfterAnother) {
  const Invariants learned = learned_from(
      {"t1: w x @mark\n t1: r x @count\n t1: r y @count\n t2: w y @mark\n t1: r y @count\n"});
  constexpr std::string_view bug = "t1: w x @mark\n t2: w x @mark\n t1: r x @count\n";
  const auto findings = check(bug, {.invariants = &learned});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(role(findings[0], "P").place.file, "mark");
  constexpr std::string_view wanted = "t1: r x @count\n t2: w x @mark\n t1: r x @count\n";
  EXPECT_EQ(check(wanted, {.invariants = &learned}).size(), 0u);
}
// The private, the halved and the shared way of the shadow all put down pairs.
TEST(AvioLearned, PairsAreSeenInEveryFormOfMemory) {
  const RunEvidence seen = evidence(
      "t1: w x @a\n t1: r x @b\n t2: r x @c\n t1: w x @d\n t2: r x @e\n"
      "t1: w y:8 @f\n t1: r y+4:4 @g\n t1: r y+4:4 @h\n t1: r y+1:2 @i\n t1: r y:8 @j\n");
  EXPECT_EQ(seen.made.size(), 9u) << "a-b, b-d, c-e; f-g, g-h, f-i; f-j, h-j, i-j";
}
TEST(AvioLearned, AThreadThatLivedBetweenPAndIExplainsTheSplit) {
  const auto findings = check(
      "t0: w x @P\n t0: fork t1\n t1: thread.begin t0\n t1: w x @R\n t1: thread.end\n t0: join t1\n"
      "t0: r x @I\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_LT(findings[0].rank, 0.1);
}
TEST(AvioLearned, WhatNeverExecutedIsNotJudged) {
  const Invariants learned = learned_from({"t1: r y @elsewhere\n"});
  const Trace trace = trace_from_text(kSplit);
  Avio avio(trace.catalog, {.invariants = &learned});
  avio.on(trace.events, 0);
  EXPECT_EQ(avio.finish().size(), 0u);
  EXPECT_EQ(avio.unjudged(), 1u);
}

}  // namespace
}  // namespace heddle::avio
