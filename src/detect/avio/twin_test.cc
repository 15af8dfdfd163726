// Random traces: the detector's triples against the definition's.
#include "detect/avio/twin.h"

#include "base/test_seed.h"
#include "detect/avio/finder.h"
#include "detect/avio/pair_log.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

struct Shape {
  unsigned threads, length, span;
  bool blocks, rebirth;
  unsigned turn = 1;  // how many events a thread makes in a row, about
};

Event random_event(std::mt19937& random, const Shape& shape, ThreadId before) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Event event;
  event.thread = below(shape.turn) != 0 ? before : below(shape.threads);
  event.address = 0x1000 - shape.span / 2 + below(shape.span);
  const unsigned dice = below(100);
  if (shape.blocks && dice < 4) {
    event.kind = dice < 2 ? EventKind::kAlloc : EventKind::kFree;
    event.value = event.kind == EventKind::kFree && below(2) == 0 ? 0 : 1 + below(shape.span);
    return event;
  }
  if (shape.rebirth && dice < 8) {
    event.kind = dice < 6 ? EventKind::kThreadBegin : EventKind::kThreadEnd;
    return event;
  }
  event.kind = dice < 50 ? EventKind::kRead : dice < 90 ? EventKind::kWrite : EventKind::kRmw;
  static constexpr unsigned kSizes[] = {1, 2, 4, 4, 4, 8, 8, 8, 3, 16, 21, 0};
  const unsigned size = kSizes[below(12)];
  event.size = size & 0x7fffffff;
  const bool power = size == 2 || size == 4 || size == 8;
  if (power && below(4) != 0) event.address -= event.address % size;
  return event;
}

std::vector<Event> random_events(std::mt19937& random, const Shape& shape) {
  std::vector<Event> events;
  ThreadId thread = 0;
  for (unsigned n = 0; n < shape.length; ++n) {
    events.push_back(random_event(random, shape, thread));
    events.back().site = n + 1;
    thread = events.back().thread;
  }
  return events;
}

twin::Verdict found(const std::vector<Event>& events, unsigned granule) {
  struct Sink : TripleSink {
    unsigned granule{};
    std::set<twin::RawTriple> out;
    void on_triple(const Triple& triple) override {
      for (unsigned k = 0; k < 8; ++k) {
        if ((triple.mask >> k & 1) == 0) continue;
        const Address at = granule == 64 ? triple.address : triple.address + k;
        out.insert({at / granule, triple.split, triple.p.ordinal(), triple.r.ordinal(),
                    triple.i.ordinal()});
      }
    }
  } sink;
  sink.granule = granule;
  PairLog pairs;
  TripleFinder finder(granule, sink, &pairs);
  for (std::size_t n = 0; n < events.size(); ++n) {
    if (is_access(events[n].kind)) {
      finder.access(events[n], n, 0);
    } else {
      finder.on(events[n]);
    }
  }
  twin::Verdict verdict;
  verdict.triples = std::move(sink.out);
  std::map<SiteId, EventOrdinal> ordinals;
  for (std::size_t n = 0; n < events.size(); ++n) ordinals[events[n].site] = n;
  for (const auto& [p, i] : pairs.all()) verdict.pairs.insert({ordinals[p], ordinals[i]});
  return verdict;
}

std::string print(const std::vector<Event>& events) {
  std::string out;
  for (std::size_t n = 0; n < events.size(); ++n) {
    const Event& event = events[n];
    out += std::to_string(n) + ": T" + std::to_string(event.thread) + " kind " +
           std::to_string(static_cast<int>(event.kind)) + " at " + std::to_string(event.address) +
           " size " + std::to_string(event.size) + " value " + std::to_string(event.value) + "\n";
  }
  return out;
}

std::string print(const twin::Verdict& verdict) {
  std::string out;
  for (const auto& [p, i] : verdict.pairs) {
    out += "pair " + std::to_string(p) + " " + std::to_string(i) + "\n";
  }
  for (const twin::RawTriple& t : verdict.triples) {
    out += "granule " + std::to_string(t.granule) + " case " +
           std::to_string(static_cast<int>(t.split)) + " P " + std::to_string(t.p) + " R " +
           std::to_string(t.r) + " I " + std::to_string(t.i) + "\n";
  }
  return out;
}

// Removes events one by one as long as the two still disagree.
std::vector<Event> shrink(std::vector<Event> events, unsigned granule) {
  for (std::size_t n = 0; n < events.size();) {
    std::vector<Event> fewer = events;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(n));
    if (found(fewer, granule) != twin::verdict(fewer, granule)) {
      events = std::move(fewer);
    } else {
      ++n;
    }
  }
  return events;
}

TEST(AvioTwin, RandomTracesGiveIdenticalTriples) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  static constexpr unsigned kGranules[] = {1, 1, 1, 2, 4, 8, 64};
  std::size_t total = 0;
  for (int round = 0; round < 120'000; ++round) {
    Shape shape;
    shape.threads = 2 + static_cast<unsigned>(random() % 5);
    shape.length = 4 + static_cast<unsigned>(random() % 40);
    shape.span = round % 3 == 0 ? 4 : round % 3 == 1 ? 12 : 40;
    shape.blocks = random() % 2 == 0;
    shape.rebirth = random() % 4 == 0;
    shape.turn = round % 2 == 0 ? 1 : 4;
    const std::vector<Event> events = random_events(random, shape);
    const unsigned granule = kGranules[random() % std::size(kGranules)];
    const auto expected = twin::verdict(events, granule);
    total += expected.triples.size();
    if (found(events, granule) == expected) continue;
    const std::vector<Event> small = shrink(events, granule);
    FAIL() << "granule " << granule << "\n"
           << print(small) << "found\n"
           << print(found(small, granule)) << "expected\n"
           << print(twin::verdict(small, granule));
  }
  EXPECT_GT(total, 100'000u) << "the traces must contain what is compared";
}

// Many short-lived threads on few bytes: slots of ended threads are thrown out and re-used.
TEST(AvioTwin, LongTracesWithManyThreadLives) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const Shape shape{20, 600, 6, false, true};
    const std::vector<Event> events = random_events(random, shape);
    EXPECT_EQ(found(events, 1), twin::verdict(events, 1)) << "round " << round;
  }
}

}  // namespace
}  // namespace heddle::avio
