#include "detect/outcome/outcome.h"

#include <gtest/gtest.h>

namespace heddle::outcome {
namespace {

constexpr char kDeadlock[] =
    "deadlock: every thread waits for another\n"
    "thread 0 waits for the end of thread 1\n"
    "    #0 shop+0x1249\n"
    "thread 1 waits for mutex 0x1000 held by thread 2\n"
    "thread 2 waits for mutex 0x2000 held by thread 1\n"
    "thread 0\n"
    "  main /src/shop.cc:30\n"
    "thread 1\n"
    "  pthread_mutex_lock\n"
    "  transfer(int, unsigned long) /src/shop.cc:14\n"
    "  0x7f0012\n"
    "thread 2\n"
    "  audit() /src/shop.cc:21";

TEST(OutcomeText, TakesDeadlocksApart) {
  const OutcomeText text = parse_outcome(kDeadlock);
  EXPECT_EQ(text.message, "deadlock: every thread waits for another");
  ASSERT_EQ(text.threads.size(), 3u);
  EXPECT_EQ(text.threads[0].what, "end of thread");
  EXPECT_EQ(text.threads[0].holder, 1u);
  EXPECT_EQ(text.threads[1].what, "mutex");
  EXPECT_EQ(text.threads[1].object, 0x1000u);
  EXPECT_EQ(text.threads[1].holder, 2u);
  ASSERT_EQ(text.threads[1].stack.size(), 3u);
  EXPECT_EQ(text.threads[1].stack[0].function, "pthread_mutex_lock");
  EXPECT_EQ(text.threads[1].stack[1].function, "transfer(int, unsigned long)");
  EXPECT_EQ(text.threads[1].stack[1].file, "/src/shop.cc");
  EXPECT_EQ(text.threads[1].stack[1].line, 14u);
  EXPECT_EQ(text.threads[1].stack[2].function, "");
}

TEST(OutcomeText, TakesAnythingAndInventsNothing) {
  for (const char* text : {"", "\n\n", "thread", "thread x waits", "  frame of nobody",
                           "thread 1 waits for mutex 0x", "thread 99999999999999 runs"}) {
    const OutcomeText parsed = parse_outcome(text);
    for (const ThreadAtEnd& thread : parsed.threads) {
      EXPECT_EQ(thread.object, 0u) << text;
      EXPECT_FALSE(thread.holder.has_value()) << text;
    }
  }
}

class RunToEnd {
 public:
  RunToEnd() {
    catalog_.threads.resize(3);
    Site site;
    site.file = catalog_.strings.intern("/src/shop.cc");
    site.line = 13;
    catalog_.sites.push_back(site);
    site_ = static_cast<SiteId>(catalog_.sites.size() - 1);
  }

  void acquire(ThreadId thread, Address lock) {
    Event event;
    event.kind = EventKind::kAcquire;
    event.thread = thread;
    event.address = lock;
    event.site = site_;
    events_.push_back(event);
  }

  std::vector<Finding> end(RunEnd end, std::uint64_t value, std::string_view text,
                           ThreadId thread = 0) {
    Event event;
    event.kind = EventKind::kOutcome;
    event.thread = thread;
    event.size = static_cast<std::uint32_t>(end) & 0xff;
    event.value = value;
    event.address = catalog_.strings.intern(std::string(text));
    events_.push_back(event);
    OutcomeDetector detector(catalog_);
    detector.on(events_, 0);
    return detector.finish();
  }

 private:
  Catalog catalog_;
  SiteId site_{};
  std::vector<Event> events_;
};

TEST(Outcome, DeadlockSaysWhoWaitsForWhatAndWhoHoldsIt) {
  RunToEnd run;
  run.acquire(1, 0x2000);
  run.acquire(2, 0x1000);
  const std::vector<Finding> found = run.end(RunEnd::kDeadlock, 0, kDeadlock);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found[0].summary, "end of thread – mutex – mutex");
  EXPECT_EQ(found[0].in_words, "every thread waits for another");
  ASSERT_EQ(found[0].steps.size(), 3u);
  EXPECT_EQ(found[0].steps[1].place.line, 14u);
  EXPECT_EQ(found[0].steps[1].locks.size(), 1u);
  EXPECT_EQ(found[0].variables.size(), 2u);
  ASSERT_EQ(found[0].notes.size(), 3u);
  EXPECT_EQ(found[0].notes[1],
            "thread 1 waits for the mutex 0x1000, held by thread 2 since shop.cc:13");
}

TEST(Outcome, IdentityOfADeadlockDoesNotDependOnNumbersOfThreadsAndLines) {
  std::string other = kDeadlock;
  const auto swap = [&](const std::string& from, const std::string& to) {
    const std::size_t at = other.find(from);
    ASSERT_NE(at, std::string::npos);
    other.replace(at, from.size(), to);
  };
  swap("  transfer(int, unsigned long) /src/shop.cc:14", "  X");
  swap("  audit() /src/shop.cc:21", "  transfer(int, unsigned long) /src/shop.cc:99");
  swap("  X", "  audit() /src/shop.cc:7");
  RunToEnd first, second;
  const auto one = first.end(RunEnd::kDeadlock, 0, kDeadlock);
  const auto two = second.end(RunEnd::kDeadlock, 0, other);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(one[0].fingerprint, two[0].fingerprint);
}

TEST(Outcome, CrashHasSignalMessageAndPlace) {
  RunToEnd run;
  const auto found = run.end(RunEnd::kAssertion, 6,
                             "shop.cc:14: transfer: stock >= 0\nthread 1\n  abort\n"
                             "  transfer(int) /src/shop.cc:14",
                             1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kCrash);
  EXPECT_EQ(found[0].summary, "assertion");
  EXPECT_EQ(found[0].in_words, "shop.cc:14: transfer: stock >= 0");
  ASSERT_EQ(found[0].steps.size(), 1u);
  EXPECT_EQ(found[0].steps[0].thread, 1u);
  EXPECT_EQ(found[0].steps[0].place.line, 14u);
  EXPECT_EQ(found[0].steps[0].stack.size(), 2u);

  RunToEnd fault;
  const auto signal = fault.end(RunEnd::kSignal, 11, "");
  ASSERT_EQ(signal.size(), 1u);
  EXPECT_EQ(signal[0].summary, "SIGSEGV");
}

TEST(Outcome, HangIsAFindingAndAnExitIsNot) {
  RunToEnd hang;
  const auto found =
      hang.end(RunEnd::kHang, 0, "hang: the program did not end within 1 seconds\nthread 0 runs");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kHang);
  EXPECT_EQ(found[0].in_words, "the program did not end within 1 seconds");
  RunToEnd exit;
  EXPECT_TRUE(exit.end(RunEnd::kExit, 3, "").empty());
  RunToEnd lost;
  EXPECT_TRUE(lost.end(RunEnd::kLost, 0, "").empty());
}

}  // namespace
}  // namespace heddle::outcome
