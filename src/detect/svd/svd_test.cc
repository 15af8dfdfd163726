// SVD's detectors and the log on traces written by hand.
#include "detect/svd/svd.h"

#include "detect/svd/examination_log.h"
#include "detect/svd/offline_detector.h"
#include "detect/svd/online.h"
#include "trace/text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

std::vector<Finding> svd(const std::string& text, const OnlineOptions& options = {}) {
  const Trace trace = trace_from_text(text);
  SvdDetector detector(trace.catalog, options);
  detector.on(trace.events, 0);
  return detector.finish();
}

std::vector<Finding> svd_offline(const std::string& text) {
  const Trace trace = trace_from_text(text);
  OfflineDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish();
}

// "P line R line I line" of every finding; "in": a statement of the unit.
std::vector<std::string> lines(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) {
    std::string line;
    for (const Step& step : finding.steps) {
      line += (line.empty() ? "" : " ") + (step.role.empty() ? "in" : step.role) + " " +
              step.place.file + ":" + std::to_string(step.place.line);
    }
    out.push_back(line);
  }
  return out;
}

using Lines = std::vector<std::string>;

// count = count + 1, read at a.c:1, written at a.c:2.
const std::string kAdd =
    "site 1 @a.c:1 kind=r\nsite 2 @a.c:2 kind=w\n"
    "function 1 add registers=1\n"
    "segment 1 in add block=0 index=0\n"
    "  access @#1 %0\n"
    "  access @#2 value=(%0)\n"
    "  ends return\n";

const std::string kLostUpdate = kAdd +
                                "t1: segment 1\n"
                                "t1: r count @#1\n"
                                "t2: segment 1\n"
                                "t2: r count @#1\n"
                                "t2: w count @#2\n"
                                "t1: w count @#2\n";

TEST(Svd, AnInputOverwrittenBeforeTheStoreThatUsesItIsReported) {
  const std::vector<Finding> findings = svd(kLostUpdate);
  ASSERT_EQ(lines(findings), (Lines{"P a.c:1 R a.c:2 I a.c:2"}));
  EXPECT_EQ(findings[0].kind, FindingKind::kAtomicityViolation);
  EXPECT_EQ(findings[0].variables[0].name, "count");
  EXPECT_EQ(findings[0].steps[0].thread, 1u);
  EXPECT_EQ(findings[0].steps[1].thread, 2u);
  EXPECT_EQ(findings[0].steps[2].thread, 1u);
  EXPECT_EQ(findings[0].steps[0].ordinal, 1u);
  EXPECT_EQ(findings[0].in_words,
            "`count` was read, overwritten by another thread, then written from the old value");
  EXPECT_EQ(findings[0].count, 1u);
}

TEST(Svd, InstancesOfTheSameStatementsAreOneFinding) {
  std::string text = kLostUpdate;
  text += kLostUpdate.substr(kAdd.size());
  const std::vector<Finding> findings = svd(text);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].count, 2u);
}

TEST(Svd, UpdatesOneAfterTheOtherAreSilent) {
  EXPECT_EQ(lines(svd(kAdd + "t1: segment 1\nt1: r count @#1\nt1: w count @#2\n"
                             "t2: segment 1\nt2: r count @#1\nt2: w count @#2\n"
                             "t1: segment 1\nt1: r count @#1\nt1: w count @#2\n")),
            Lines{});
}

TEST(Svd, NothingComesBetweenAReadModifyWriteAndItself) {
  const std::string text =
      "site 1 @a.c:1 kind=rmw\n"
      "function 1 add registers=1\n"
      "segment 1 in add block=0 index=0\n"
      "  access @#1 %0\n"
      "  ends return\n"
      "t1: segment 1\nt1: rmw.seq_cst count @#1\n"
      "t2: segment 1\nt2: rmw.seq_cst count @#1\n"
      "t1: segment 1\nt1: rmw.seq_cst count @#1\n";
  EXPECT_EQ(lines(svd(text)), Lines{});
}

// Sites 1–3 read at a.c:1–3, sites 4–6 write at a.c:4–6.
const std::string kSites =
    "site 1 @a.c:1 kind=r\nsite 2 @a.c:2 kind=r\nsite 3 @a.c:3 kind=r\n"
    "site 4 @a.c:4 kind=w\nsite 5 @a.c:5 kind=w\nsite 6 @a.c:6 kind=w\n"
    "site 7 @b.c:7 kind=w\nsite 8 @b.c:8 kind=r\n"
    "function 1 f registers=3\n"
    "function 2 g registers=1\n"
    "segment 1 in g block=0 index=0\n  access @#7\n  ends return\n"
    "segment 2 in g block=0 index=0\n  access @#8 %0\n  ends return\n";
const std::string kRemoteWrite = "t2: segment 1\nt2: w x @#7\n";
const std::string kRemoteRead = "t2: segment 2\nt2: r x @#8\n";

// Figure 9: head->a = …; head->b = …: the data is unrelated, the address is not.
TEST(Svd, AnOverwrittenAddressIsReported) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 address=(%0)\n"
                           "  access @#5 address=(%0)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\nt1: w a @#4\n" +
                           kRemoteWrite + "t1: w b @#5\n";
  EXPECT_EQ(lines(svd(text)), (Lines{"P a.c:1 R b.c:7 I a.c:5"}));
}

// The store is where the old value was seen to be used; another one is no other bug.
TEST(Svd, OneInputOverwrittenIsOneFindingDrawnWithTheStoreThatTellsMost) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 address=(%0)\n"
                           "  access @#5 value=(%0)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\n" +
                           kRemoteWrite +
                           "t1: w a @#4\nt1: w x @#5\n"
                           "t1: segment 3\nt1: r x @#1\nt1: w a @#4\n" +
                           kRemoteWrite + "t1: w x @#5\n";
  const std::vector<Finding> findings = svd(text);
  ASSERT_EQ(lines(findings), (Lines{"P a.c:1 R b.c:7 I a.c:5"}));
  EXPECT_EQ(findings[0].count, 2u);
  ASSERT_FALSE(findings[0].notes.empty());
  EXPECT_EQ(findings[0].notes.back(), "In other instances the old value was used at a.c:4.");
}

TEST(Svd, AnOverwrittenConditionIsReportedAtTheStoreUnderIt) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends branch from=(%0)\n"
                           "segment 4 in f block=1 index=0 parents=0\n"
                           "  access @#4\n"
                           "  ends fall\n"
                           "segment 5 in f block=2 index=0\n"
                           "  access @#5\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\n" +
                           kRemoteWrite;
  EXPECT_EQ(lines(svd(text + "t1: segment 4\nt1: w y @#4\n")), (Lines{"P a.c:1 R b.c:7 I a.c:4"}));
  EXPECT_EQ(lines(svd(text + "t1: segment 5\nt1: w y @#5\n")), Lines{});  // not under it
}

// y = x; x is overwritten; z = y. The unit has read y back, but nobody else knows y: one unit.
// With y shared, the unit of x ended where y was read back.
TEST(Svd, ASharedVariableReadBackEndsTheUnit) {
  const std::string program = kSites +
                              "segment 3 in f block=0 index=0\n"
                              "  access @#1 %0\n"
                              "  access @#4 value=(%0)\n"
                              "  ends fall\n"
                              "segment 4 in f block=1 index=0\n"
                              "  access @#2 %1\n"
                              "  access @#5 value=(%1)\n"
                              "  ends return\n"
                              "t1: segment 3\nt1: r x @#1\nt1: w y @#4\n";
  const std::string rest = kRemoteWrite + "t1: segment 4\nt1: r y @#2\nt1: w z @#5\n";
  EXPECT_EQ(lines(svd(program + rest)), (Lines{"P a.c:1 in a.c:4 R b.c:7 I a.c:5"}));
  EXPECT_EQ(lines(svd(program + "t2: segment 2\nt2: r y @#8\n" + rest)), Lines{});
}

// The unit is not violated as long as only what it wrote is read: unless everything is checked.
TEST(Svd, OutputsAreCheckedOnRequest) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 value=(%0)\n"
                           "  access @#5 value=(%0)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r a @#1\nt1: w x @#4\n" +
                           kRemoteRead + "t1: w z @#5\n";
  EXPECT_EQ(lines(svd(text)), Lines{});
  OnlineOptions options;
  options.inputs_only = false;
  EXPECT_EQ(lines(svd(text, options)), (Lines{"in a.c:1 P a.c:4 R b.c:8 I a.c:5"}));
}

// if (x) a = 1; … b = a: the value of a does not come from x, the execution does.
TEST(Svd, ControlConnectsUnitsOnRequest) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends branch from=(%0)\n"
                           "segment 4 in f block=1 index=0 parents=0\n"
                           "  access @#4\n"
                           "  ends fall\n"
                           "segment 5 in f block=2 index=0\n"
                           "  access @#2 %1\n"
                           "  access @#5 value=(%1)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\nt1: segment 4\nt1: w a @#4\n" +
                           kRemoteWrite + "t1: segment 5\nt1: r a @#2\nt1: w b @#5\n";
  EXPECT_EQ(lines(svd(text)), Lines{});
  OnlineOptions options;
  options.merge_control = true;
  EXPECT_EQ(lines(svd(text, options)), (Lines{"P a.c:1 in a.c:4 R b.c:7 I a.c:5"}));
}

// a = table[x]: the value does not come from x, the address does.
TEST(Svd, AddressesConnectUnitsOnRequest) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#2 %1 address=(%0)\n"
                           "  access @#4 value=(%1)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\nt1: r t @#2\n" +
                           kRemoteWrite + "t1: w b @#4\n";
  EXPECT_EQ(lines(svd(text)), Lines{});
  OnlineOptions options;
  options.propagate_address = true;
  EXPECT_EQ(lines(svd(text, options)), (Lines{"P a.c:1 in a.c:2 R b.c:7 I a.c:4"}));
}

// Two halves of a word: with blocks of a word another thread's half is an input overwritten.
TEST(Svd, TheBlockSizeDecidesWhatIsOneLocation) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 value=(%0)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x:2 @#1\n"
                           "t2: segment 1\nt2: w x+2:2 @#7\n"
                           "t1: w y @#4\n";
  EXPECT_EQ(lines(svd(text)), (Lines{"P a.c:1 R b.c:7 I a.c:4"}));
  OnlineOptions options;
  options.block_size = 2;
  EXPECT_EQ(lines(svd(text, options)), Lines{});
}

// Memory that was freed and handed out again has no history.
// Thread 1 writes `count`, reads it back at a.c:3 while nobody else is there, and stores what it
// computed from that at a.c:4, in steps of its own; thread 2 has been in the page before.
std::string read_back(const std::string& between, const std::string& after_store = "") {
  return "site 1 @a.c:1 kind=w\nsite 2 @a.c:2 kind=w\nsite 3 @a.c:3 kind=r\nsite 4 @a.c:4 kind=w\n"
         "site 5 @a.c:5 kind=r\n"
         "function 1 init registers=1\n"
         "segment 1 in init block=0 index=0\n  access @#1\n  ends return\n"
         "function 2 other registers=1\n"
         "segment 2 in other block=0 index=0\n  access @#2\n  ends return\n"
         "function 3 deposit registers=2\n"
         "segment 3 in deposit block=0 index=0\n  access @#3 %0\n"
         "  ends call arguments=() defines=%1 callee=pause\n"
         "segment 4 in deposit block=0 index=1\n  access @#4 value=(%0)\n  ends return\n"
         "segment 5 in deposit block=0 index=1\n  access @#5 %0\n"
         "  ends call arguments=() defines=%1 callee=pause\n"
         "t2: segment 2\nt2: w elsewhere @#2\n"
         "t1: segment 1\nt1: w count @#1\n"
         "t1: segment 3\nt1: r count @#3\n" +
         between + "t1: segment 4\nt1: w count @#4\n" + after_store;
}

TEST(Svd, AnUpdateOfWhatWasReadBackIsLost) {
  const std::string overwrites = "t2: segment 2\nt2: w count @#2\n";
  const std::vector<Finding> findings = svd(read_back(overwrites));
  ASSERT_EQ(lines(findings), (Lines{"P a.c:3 R a.c:2 I a.c:4"}));
  EXPECT_EQ(findings[0].steps[0].ordinal, 5u);
  EXPECT_EQ(findings[0].in_words,
            "`count` was read, overwritten by another thread, then written from the old value");
}

TEST(Svd, WhatWasReadBackAndOnlyReadByOthersIsNotLost) {
  EXPECT_TRUE(svd(read_back("t2: segment 5\nt2: r count @#5\n")).empty());
}

TEST(Svd, WhatIsReadAgainAfterTheOverwriteIsNotLost) {
  EXPECT_TRUE(
      svd(read_back("t2: segment 2\nt2: w count @#2\nt1: segment 5\nt1: r count @#5\n")).empty());
}

TEST(Svd, WhatIsStoredElsewhereIsNoLostUpdate) {
  std::string text = read_back("t2: segment 2\nt2: w count @#2\n");
  text.replace(text.find("t1: w count @#4"), 15, "t1: w other @#4");
  EXPECT_TRUE(svd(text).empty());
}

TEST(Svd, FreedMemoryIsForgotten) {
  const std::string text = kSites +
                           "segment 3 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 value=(%0)\n"
                           "  ends return\n"
                           "t1: segment 3\nt1: r x @#1\n";
  EXPECT_EQ(lines(svd(text + kRemoteWrite + "t1: w y @#4\n")), (Lines{"P a.c:1 R b.c:7 I a.c:4"}));
  EXPECT_EQ(lines(svd(text + "t1: free x:8\nt2: alloc x:8\n" + kRemoteWrite + "t1: w y @#4\n")),
            Lines{});
}

// A thread that goes over the same memory again and again begins a unit with every store.
TEST(Online, MemoryStaysBelowWhatIsSaidToBeEnough) {
  constexpr std::size_t kTouched = std::size_t{1} << 19;
  constexpr std::size_t kStores = 2'000'000;
  constexpr std::size_t kBatch = 1000;
  OnlineOptions options;
  options.collect_bytes = std::size_t{1} << 16;
  options.collect_times = 3;
  const std::size_t enough = options.collect_bytes + options.collect_times * kTouched;
  const Catalog catalog;
  Online online(catalog, options);
  std::vector<Event> batch(kBatch);
  std::size_t most = 0;
  for (std::size_t first = 0; first < kStores; first += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      batch[i].kind = EventKind::kWrite;
      batch[i].thread = 1;
      batch[i].size = 8;
      batch[i].address = (std::size_t{1} << 30) + (first + i) * 8 % kTouched;
    }
    ASSERT_EQ(online.on(batch, first), kBatch);
    most = std::max(most, online.bytes());
  }
  EXPECT_EQ(online.units_created(), kStores);
  EXPECT_LE(most, enough);
  EXPECT_GE(most, enough - enough / 8);  // and it is not collected for nothing
}

TEST(SvdOffline, ReportsConflictsBeforeTheUnitEnded) {
  const std::vector<Finding> findings = svd_offline(kLostUpdate);
  EXPECT_EQ(lines(findings), (Lines{"P a.c:1 R a.c:2 I a.c:2"}));
  EXPECT_EQ(findings[0].detectors, std::vector<std::string>{"svd-offline"});
}

std::vector<LogStatement> log_of(const std::string& text) {
  const Trace trace = trace_from_text(text);
  ExaminationLog log(trace.catalog);
  log.on(trace.events, 0);
  return log.statements();
}

// Figure 3: what was meant to be private comes before honest communication.
TEST(ExaminationLog, ReadsThatUsuallySeeTheirOwnThreadsValueComeFirst) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += "t1: w used @q.c:8\nt1: r used @q.c:12\n";
    text += "t1: w mail @q.c:20\nt2: r mail @q.c:30\n";
    text += "t2: w mail @q.c:31\nt1: r mail @q.c:21\n";
  }
  text += "t1: w used @q.c:8\nt2: w used @q.c:8\nt1: r used @q.c:12\n";
  const std::vector<LogStatement> statements = log_of(text);
  ASSERT_EQ(statements.size(), 3u);
  const LogStatement& first = statements[0];
  EXPECT_EQ(first.groups[0].read.place.line, 12u);
  EXPECT_EQ(first.groups[0].remote.place.line, 8u);
  EXPECT_EQ(first.groups[0].remote.thread, 2u);
  EXPECT_EQ(first.groups[0].local.place.line, 8u);
  EXPECT_EQ(first.groups[0].local.thread, 1u);
  EXPECT_EQ(first.own_reads, 5u);
  EXPECT_EQ(first.foreign_reads, 1u);
  EXPECT_EQ(first.all_reads, 6u);
}

TEST(ExaminationLog, AReadWithoutAnEarlierLocalWriteComesLast) {
  const std::vector<LogStatement> statements =
      log_of("t1: w a @q.c:1\nt2: r a @q.c:2\nt2: w b @q.c:3\nt1: w b @q.c:4\nt2: r b @q.c:5\n");
  ASSERT_EQ(statements.size(), 2u);
  EXPECT_EQ(statements[0].groups[0].read.place.line, 5u);
  EXPECT_EQ(statements[1].groups[0].read.place.line, 2u);
  EXPECT_TRUE(statements[1].groups[0].local.role.empty());
  EXPECT_EQ(statements[1].suspicion, 0);
}

TEST(ExaminationLog, SeveralReadsInALineAreOneStatement) {
  const std::vector<LogStatement> statements = log_of(
      "t1: w a @q.c:1\nt2: r a @q.c:2:5\nt2: r a @q.c:2:20\nt2: r a @q.c:3\n"
      "t2: w a @q.c:4\nt2: r a @q.c:2:20\n");
  ASSERT_EQ(statements.size(), 2u);
  EXPECT_EQ(statements[0].groups[0].read.place.line, 2u);
  ASSERT_EQ(statements[0].groups.size(), 1u);
  EXPECT_EQ(statements[0].foreign_reads, 2u);
  EXPECT_EQ(statements[0].own_reads, 1u);
  EXPECT_EQ(statements[0].all_reads, 3u);
  EXPECT_EQ(statements[1].foreign_reads, 1u);
}

TEST(ExaminationLog, WhatAJoinedThreadLeftComesLast) {
  const std::string shared = "t2: w b @q.c:4\nt0: w b @q.c:5\nt2: r b @q.c:6\nt2: r b @q.c:6\n";
  const std::vector<LogStatement> joined = log_of("t0: w a @q.c:1\nt0: fork t1\nt1: w a @q.c:2\n" +
                                                  shared + "t0: join t1\nt0: r a @q.c:3\n");
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].groups[0].read.place.line, 6u);
  EXPECT_EQ(joined[1].suspicion, 0);
  // The same read while the thread may still be at work.
  const std::vector<LogStatement> at_work =
      log_of("t0: w a @q.c:1\nt0: fork t1\nt1: w a @q.c:2\n" + shared + "t0: r a @q.c:3\n");
  ASSERT_EQ(at_work.size(), 2u);
  EXPECT_GT(at_work[1].suspicion, 0);
}

TEST(ExaminationLog, FreedMemoryIsForgotten) {
  EXPECT_TRUE(log_of("t1: w a @q.c:1\nt1: free a:8\nt2: alloc a:8\nt2: r a @q.c:2\n").empty());
}

}  // namespace
}  // namespace heddle::svd
