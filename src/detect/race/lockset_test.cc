#include "detect/race/lockset.h"

#include "order/random_run.h"
#include "trace/text.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace heddle::race {
namespace {

using testing::RunShape;
using Reports = std::set<std::pair<std::size_t, Address>>;  // event and byte

Reports reports_of(const std::vector<Event>& events) {
  CallStacks stacks;
  LocksHeld held;
  LocksetEngine engine(stacks, held);
  Reports out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    held.on(events[i]);
    engine.on(events[i], i, [&](const LocksetEngine::Report& report) {
      for (std::uint32_t k = 0; k < report.size; ++k) out.emplace(i, report.address + k);
    });
  }
  return out;
}

// Figure 5 of correlated-2014 with Eraser's states, byte by byte, with sets of the library.
Reports reports_by_definition(const std::vector<Event>& events) {
  struct Byte {
    std::set<ThreadId> threads;
    bool written_while_shared = false;
    std::optional<std::set<Address>> candidates;
    bool reported = false;
  };
  std::map<Address, Byte> bytes;
  std::map<ThreadId, std::map<Address, LockMode>> held;
  Reports out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.outcome == OpOutcome::kOk && event.kind == EventKind::kAcquire) {
      held[event.thread][event.address] = event.mode;
    } else if (event.kind == EventKind::kRelease) {
      held[event.thread].erase(event.address);
    }
    if (!is_access(event.kind) || event.order != MemoryOrder::kPlain) continue;
    std::set<Address> now;
    for (const auto& [lock, mode] : held[event.thread]) {
      if (!is_write(event.kind) || mode == LockMode::kExclusive) now.insert(lock);
    }
    for (Address a = event.address; a < event.address + event.size; ++a) {
      Byte& byte = bytes[a];
      byte.threads.insert(event.thread);
      if (byte.threads.size() < 2) continue;
      byte.written_while_shared |= is_write(event.kind);
      if (!byte.candidates) {
        byte.candidates = now;
      } else {
        std::erase_if(*byte.candidates, [&](Address lock) { return !now.contains(lock); });
      }
      if (!byte.written_while_shared || !byte.candidates->empty() || byte.reported) continue;
      byte.reported = true;
      out.emplace(i, a);
    }
  }
  return out;
}

TEST(LocksetDefinition, AgreesOnRandomRuns) {
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    RunShape shape;
    shape.overlapping = seed % 3 == 0;
    shape.plain = 40;
    shape.fork_join = false;
    shape.threads = 3;
    const std::vector<Event> events = testing::random_run(seed, shape);
    ASSERT_EQ(reports_of(events), reports_by_definition(events)) << "seed " << seed << "\n"
                                                                 << testing::to_string(events);
  }
}

std::vector<Finding> check(const char* text) {
  const Trace trace = trace_from_text(text);
  LocksetDetector detector(trace.catalog);
  detector.on(trace.events, 0);
  return detector.finish();
}

TEST(LocksetDetector, ReportsTheAccessThatLeavesNoLock) {
  const std::vector<Finding> findings = check(
      "t0: acq m\nt0: w x @a.c:1\nt0: rel m\n"
      "t1: acq m\nt1: w x @a.c:2\nt1: rel m\n"
      "t0: acq n\nt0: w x @a.c:3\nt0: rel n\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::kInconsistentLocking);
  EXPECT_EQ(findings[0].notes.at(0), "1 held m; 2 held n.");
}

TEST(LocksetDetector, InitialisationAndReadSharingNeedNoLock) {
  EXPECT_TRUE(check("t0: w x\nt0: w x\nt1: r x\nt2: r x\n").empty());
}

}  // namespace
}  // namespace heddle::race
