// Random traces: the detector's triples against the definition's.
#include "detect/avio/twin.h"

#include "base/test_seed.h"
#include "detect/avio/finder.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

struct Shape {
  unsigned threads, length, span;
  bool blocks, rebirth;
};

Event random_event(std::mt19937& random, const Shape& shape) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Event event;
  event.thread = below(shape.threads);
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

std::set<twin::RawTriple> found(const std::vector<Event>& events, unsigned granule) {
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
  TripleFinder finder(granule, sink);
  const std::span<const Event> all(events);
  for (std::size_t n = 0; n < events.size(); ++n) {
    // Some are expected, in batches of all lengths, some are not.
    if (n % 7 == 0) {
      const std::size_t most = std::min(TripleFinder::kMostExpected, events.size() - n);
      finder.expect(all.subspan(n, n % 2 == 0 ? most : 0));
    }
    if (is_access(events[n].kind)) {
      finder.access(events[n], n, 0);
    } else {
      finder.on(events[n]);
    }
  }
  return sink.out;
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

std::string print(const std::set<twin::RawTriple>& triples) {
  std::string out;
  for (const twin::RawTriple& t : triples) {
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
    if (found(fewer, granule) != twin::triples(fewer, granule)) {
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
    std::vector<Event> events;
    for (unsigned n = 0; n < shape.length; ++n) events.push_back(random_event(random, shape));
    const unsigned granule = kGranules[random() % std::size(kGranules)];
    const auto expected = twin::triples(events, granule);
    total += expected.size();
    if (found(events, granule) == expected) continue;
    const std::vector<Event> small = shrink(events, granule);
    FAIL() << "granule " << granule << "\n"
           << print(small) << "found\n"
           << print(found(small, granule)) << "expected\n"
           << print(twin::triples(small, granule));
  }
  EXPECT_GT(total, 100'000u) << "the traces must contain what is compared";
}

// Many short-lived threads on few bytes: slots of ended threads are thrown out and re-used.
TEST(AvioTwin, LongTracesWithManyThreadLives) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const Shape shape{20, 600, 6, false, true};
    std::vector<Event> events;
    for (unsigned n = 0; n < shape.length; ++n) events.push_back(random_event(random, shape));
    EXPECT_EQ(found(events, 1), twin::triples(events, 1)) << "round " << round;
  }
}

}  // namespace
}  // namespace heddle::avio
