// What programs say about their own races, as the marks that the runtime makes of it.
#include "detect/race/annotations.h"

#include "detect/race/frontier.h"
#include "detect/race/lockset.h"
#include "detect/race/race.h"
#include "trace/text.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::race {
namespace {

std::size_t races(const std::string& text) {
  const Trace trace = trace_from_text(text);
  RaceDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish().size();
}

std::size_t unlocked(const std::string& text) {
  const Trace trace = trace_from_text(text);
  LocksetDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish().size();
}

std::string begin(int thread, const char* what) {
  return fmt::format("t{}: mark \"heddle:{} 1\"\n", thread, what);
}
std::string end(int thread, const char* what) {
  return fmt::format("t{}: mark \"heddle:{} 0\"\n", thread, what);
}

// ---- synchronisation that is ignored --------------------------------------------------------

// How t1, which wrote, hands over to t2, which writes next.
struct HandOver {
  const char* name;
  std::string before;
  std::string gives;  // by t1
  std::string takes;  // by t2
};

const HandOver kHandOvers[] = {
    {"lock", "", "t1: acq m\nt1: rel m\n", "t2: acq m\nt2: rel m\n"},
    {"condition", "t2: acq m\nt2: rel m\n", "t1: signal c\n", "t2: wait c m\n"},
    {"semaphore", "", "t1: sem.post s\n", "t2: sem.wait s\n"},
    {"barrier", "", "t1: barrier.arrive b\n", "t2: barrier.arrive b\nt2: barrier.leave b\n"},
    {"once", "", "t1: once.begin o\nt1: once.end o\n", "t2: once.pass o\n"},
    {"announced order", "", "t1: order.release q\n", "t2: order.acquire q\n"},
    {"atomic", "", "t1: w.release f\n", "t2: r.acquire f\n"},
    {"fences", "", "t1: fence.release\nt1: w.relaxed f\n", "t2: r.relaxed f\nt2: fence.acquire\n"},
};

TEST(Annotations, IgnoredSynchronisationOrdersNothing) {
  for (const HandOver& way : kHandOvers) {
    const auto run = [&](bool ignore_giver, bool ignore_taker) {
      const auto side = [](int thread, bool ignored, const std::string& text) {
        return ignored ? begin(thread, "ignore-sync") + text + end(thread, "ignore-sync") : text;
      };
      return races("t0: fork t1\nt0: fork t2\nt1: w x @a.c:1\n" + way.before +
                   side(1, ignore_giver, way.gives) + side(2, ignore_taker, way.takes) +
                   "t2: w x @a.c:2\n");
    };
    EXPECT_EQ(run(false, false), 0u) << way.name;
    EXPECT_EQ(run(true, false), 1u) << way.name;
    EXPECT_EQ(run(false, true), 1u) << way.name;
  }
}

TEST(Annotations, SynchronisationCountsAgainAfterTheOutermostEnd) {
  const std::string open = "t0: fork t1\nt1: w x @a.c:1\n" + begin(1, "ignore-sync") +
                           begin(1, "ignore-sync") + end(1, "ignore-sync");
  const std::string hand_over = "t1: order.release q\nt0: order.acquire q\nt0: w x @a.c:2\n";
  EXPECT_EQ(races(open + hand_over), 1u);
  EXPECT_EQ(races(open + end(1, "ignore-sync") + hand_over), 0u);
}

TEST(Annotations, IgnoredSynchronisationIsThatOfOneThread) {
  EXPECT_EQ(races("t0: fork t1\n" + begin(0, "ignore-sync") +
                  "t0: fork t2\nt1: w x @a.c:1\nt1: order.release q\nt2: order.acquire q\n"
                  "t2: w x @a.c:2\n"),
            0u);
}

TEST(Annotations, ForkAndJoinOrderAlways) {
  EXPECT_EQ(races(begin(0, "ignore-sync") +
                  "t0: w x @a.c:1\nt0: fork t1\nt1: w x @a.c:2\nt1: thread.end\nt0: join t1\n"
                  "t0: w x @a.c:3\n"),
            0u);
}

// An atomic access stays atomic, and its value is not that of the release before it.
TEST(Annotations, AnAtomicWriteThatOrdersNothingEndsTheReleaseSequence) {
  const std::string run = "t0: fork t1\nt0: fork t2\nt1: w x @a.c:1\nt1: w.release f @a.c:2\n" +
                          begin(2, "ignore-sync") + "t2: w.release f @a.c:3\n" +
                          end(2, "ignore-sync") + "t0: r.acquire f @a.c:4\nt0: w x @a.c:5\n";
  EXPECT_EQ(races(run), 1u) << "on x; f is atomic on all sides";
  const std::string rmw = "t0: fork t1\nt0: fork t2\nt1: w x @a.c:1\nt1: w.release f @a.c:2\n" +
                          begin(2, "ignore-sync") + "t2: rmw.relaxed f @a.c:3\n" +
                          end(2, "ignore-sync") + "t0: r.acquire f @a.c:4\nt0: w x @a.c:5\n";
  EXPECT_EQ(races(rmw), 0u) << "a read-modify-write goes on with the sequence";
}

TEST(Annotations, LocksAreHeldThoughTheyOrderNothing) {
  const std::string run = "t0: fork t1\nt0: fork t2\n" + begin(1, "ignore-sync") +
                          begin(2, "ignore-sync") +
                          "t1: acq m\nt1: w x @a.c:1\nt1: rel m\n"
                          "t2: acq m\nt2: w x @a.c:2\nt2: rel m\n";
  EXPECT_EQ(races(run), 1u);
  EXPECT_EQ(unlocked(run), 0u);
}

// The inside of a lock that is announced: plain accesses, atomic ones, and order.
TEST(Annotations, TheInsideOfAnAnnouncedLockIsItsOwnBusiness) {
  const auto take = [](int t, bool announced) {
    const std::string inside =
        fmt::format("t{0}: rmw.acq_rel state @l.c:1\nt{0}: w owner @l.c:2\n", t);
    return announced ? begin(t, "ignore-all") + inside + end(t, "ignore-all") : inside;
  };
  const auto run = [&](bool announced) {
    return "t0: fork t1\nt0: fork t2\nt1: w x @a.c:1\n" + take(1, announced) + take(2, announced) +
           "t2: w x @a.c:2\nt1: w owner @l.c:3\nt1: w state @l.c:4\n";
  };
  EXPECT_EQ(races(run(false)), 3u) << "two on owner, one on state, which orders x";
  EXPECT_EQ(races(run(true)), 1u) << "on x: what happened inside ordered nothing";
}

// ---- accesses that are ignored --------------------------------------------------------------

std::string benign(const char* what) {
  return fmt::format("t0: mark \"heddle:benign-race {}\"\n", what);
}

TEST(Annotations, BenignBytesMayOverlap) {
  const std::string both = "var a 0x1000:64\nt0: fork t1\n" + benign("0x1000 64") +
                           benign("0x1010 4") + "t0: w a+32:8 @a.c:1\nt1: w a+32:8 @a.c:2\n";
  EXPECT_EQ(races(both), 0u);
  EXPECT_EQ(races("var a 0x1000:64\nt0: fork t1\n" + benign("0x1010 4") +
                  "t0: w a+32:8 @a.c:1\nt1: w a+32:8 @a.c:2\n"),
            1u);
  EXPECT_EQ(races("var a 0x1000:64\nt0: fork t1\n" + benign("0x1018 8") + benign("0x1000 16") +
                  benign("0x1010 8") +
                  "t0: w a+8:8 @a.c:1\nt1: w a+8:8 @a.c:2\n"
                  "t0: w a+28:4 @a.c:3\nt1: w a+28:4 @a.c:4\n"
                  "t0: w a+32:4 @a.c:5\nt1: w a+32:4 @a.c:6\n"),
            1u);
}

// A field in the middle of a block: whoever gets the memory next has promised nothing.
TEST(Annotations, WhatWasSaidOfFreedMemoryIsForgotten) {
  for (const char* free : {"t0: free 0x1000:64\n", "t0: free 0x1000\n"}) {
    const std::string run = "t0: alloc 0x1000:64\nt0: fork t1\n" + benign("0x1010 8") +
                            benign("0x2000 8") + free +
                            "t0: alloc 0x1000:64\nt0: w 0x1010:8 @a.c:1\nt1: w 0x1010:8 @a.c:2\n"
                            "t0: w 0x2000:8 @a.c:3\nt1: w 0x2000:8 @a.c:4\n";
    EXPECT_EQ(races(run), 1u) << free;
  }
}

// ---- frontier -------------------------------------------------------------------------------

struct Frontier {
  Trace trace;
  Marks marks;

  explicit Frontier(const std::string& text) : trace(trace_from_text(text)) {
    FrontierSettings settings;
    settings.pass = FrontierSettings::Pass::kFind;
    FrontierDetector find(trace.catalog, &settings);
    find.on(trace.events, 0);
    EXPECT_TRUE(find.finish().empty());
    marks = settings.marks;
  }
  bool lists(std::string_view text) const {
    return marks.to_text().find(text) != std::string::npos;
  }
  std::size_t races(Mark mark) const {
    FrontierSettings settings;
    settings.pass = FrontierSettings::Pass::kApply;
    for (MarkedPair pair : marks.pairs()) {
      pair.mark = mark;
      settings.marks.add(std::move(pair));
    }
    FrontierDetector apply(trace.catalog, &settings);
    apply.on(trace.events, 0);
    return apply.finish().size();
  }
};

TEST(AnnotationsOfFrontier, AnnouncedOrderIsListedAndOrdersOnceMarked) {
  const Frontier run(
      "t0: fork t1\nt0: w x @a.c:1\nt0: order.release q @a.c:2\nt1: order.acquire q @a.c:3\n"
      "t1: w x @a.c:4\n");
  EXPECT_TRUE(run.lists("a.c:2:0")) << run.marks.to_text();
  EXPECT_FALSE(run.lists("a.c:4:0")) << "ordered by the hand-over\n" << run.marks.to_text();
  EXPECT_EQ(run.races(Mark::kSync), 0u);
  EXPECT_EQ(run.races(Mark::kData), 1u);
}

TEST(AnnotationsOfFrontier, IgnoredSynchronisationIsNotListedAndOrdersNothing) {
  const std::string given = "t0: order.release q @a.c:2\n";
  const std::string taken = "t1: order.acquire q @a.c:3\nt1: w x @a.c:4\n";
  const std::string start = "t0: fork t1\nt0: w x @a.c:1\n";
  const Frontier run(start + begin(0, "ignore-sync") + given + end(0, "ignore-sync") + taken);
  EXPECT_FALSE(run.lists("a.c:2:0")) << run.marks.to_text();
  EXPECT_TRUE(run.lists("a.c:4:0")) << run.marks.to_text();
  // Marks of another run do not help either.
  Frontier other(start + given + taken);
  ASSERT_TRUE(other.lists("a.c:2:0"));
  other.trace = run.trace;
  EXPECT_EQ(other.races(Mark::kSync), 1u);
}

TEST(AnnotationsOfFrontier, AMarkedFlagOrdersNothingWhileSynchronisationIsIgnored) {
  const std::string start = "t0: fork t1\nt0: w x @a.c:1\n";
  const std::string given = "t0: w flag @a.c:2\n";
  const std::string taken = "t1: r flag @a.c:3\nt1: w x @a.c:4\n";
  Frontier run(start + given + taken);
  EXPECT_EQ(run.races(Mark::kSync), 0u);
  run.trace = trace_from_text(start + begin(0, "ignore-sync") + given + taken);
  EXPECT_EQ(run.races(Mark::kSync), 1u);
}

TEST(AnnotationsOfFrontier, WhatIsNotLookedAtIsNeitherListedNorARace) {
  const std::string plain = "t0: fork t1\nt0: w x @a.c:1\nt1: w x @a.c:2\n";
  const Frontier seen(plain);
  EXPECT_TRUE(seen.lists("a.c:1:0"));
  EXPECT_EQ(seen.races(Mark::kData), 1u);
  const std::string hidden[] = {
      "var x 0x1000:8\n" + benign("0x1000 8") + plain,
      begin(0, "ignore-writes") + plain,
      "t0: mark \"heddle:race-detection 0\"\n" + plain,
      begin(0, "ignore-all") + plain,
  };
  for (const std::string& text : hidden) {
    Frontier run(text);
    EXPECT_FALSE(run.lists("a.c:1:0")) << text << run.marks.to_text();
    run.marks = seen.marks;
    EXPECT_EQ(run.races(Mark::kData), 0u) << text;
  }
  const Frontier writes(begin(0, "ignore-reads") + plain);
  EXPECT_TRUE(writes.lists("a.c:1:0"));
}

TEST(AnnotationsOfFrontier, MarkedAutomaticallyTheyAreThoseOfRace) {
  const std::string run = "t0: fork t1\nt0: w x @a.c:1\n" + begin(0, "ignore-sync") +
                          "t0: order.release q @a.c:2\n" + end(0, "ignore-sync") +
                          "t1: order.acquire q @a.c:3\nt1: w x @a.c:4\n";
  const Trace trace = trace_from_text(run);
  FrontierSettings settings;
  FrontierDetector detector(trace.catalog, &settings);
  detector.on(trace.events, 0);
  EXPECT_EQ(detector.finish().size(), races(run));
  EXPECT_EQ(races(run), 1u);
}

}  // namespace
}  // namespace heddle::race
