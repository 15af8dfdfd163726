// Random traces: the detector's triples against the definition's.
#include "detect/avio/twin.h"

#include "base/test_seed.h"
#include "detect/avio/avio.h"
#include "detect/avio/finder.h"
#include "detect/avio/pair_log.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

struct Shape {
  unsigned threads, length, span;
  bool blocks, rebirth;
  unsigned turn = 1;   // how many events a thread makes in a row, about
  bool cells = false;  // executions access whole cells only
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

struct Sink : TripleSink {
  explicit Sink(unsigned of) : granule(of) {}
  void on_triple(const Triple& triple) override {
    for (unsigned k = 0; k < 8; ++k) {
      if ((triple.mask >> k & 1) == 0) continue;
      const Address at = granule == 64 ? triple.address : triple.address + k;
      out.insert(
          {at / granule, triple.split, triple.p.ordinal(), triple.r.ordinal(), triple.i.ordinal()});
    }
  }
  const unsigned granule;
  std::set<twin::RawTriple> out;
};

twin::Verdict found(const std::vector<Event>& events, unsigned granule) {
  Sink sink(granule);
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

constexpr SiteId kSites = 3;  // of accesses in executions

// A trace whose accesses are also there as executions: runs of one thread are cut into segments,
// and some of them are loops.
class Executed {
 public:
  Executed(std::mt19937& random, const Shape& shape) : random_(random), cells_(shape.cells) {
    ThreadId thread = 0;
    while (events.size() < shape.length) {
      Event event = random_event(random_, shape, thread);
      thread = event.thread;
      if (!is_access(event.kind)) {
        other(event);
        continue;
      }
      const bool plain = below(4) != 0;
      const unsigned what = below(8);
      const bool apart = what < 3 && below(2) == 0;  // accesses of a loop to different arrays
      std::vector<Event> body;
      for (unsigned n = 1 + below(5); n > 0; --n) {
        event = random_event(random_, shape, thread);
        if (!is_access(event.kind)) continue;
        event.thread = thread;
        event.site = 1 + below(kSites);
        if (shape.cells) {
          event.size = 8 * (1 + below(3)) & 0x1f;
          event.address -= event.address % 8;
        } else if (plain) {
          event.size = below(2) == 0 ? 4 : 8;
          event.address -= event.address % event.size;
        }
        if (apart) event.address += 0x400 * body.size();
        if (!body.empty() && below(3) == 0) {  // the same bytes again
          event.address = body.back().address;
          event.size = body.back().size;
        }
        body.push_back(event);
      }
      if (body.empty()) continue;
      switch (what) {
        case 0:
        case 1:
          loop(body);
          break;
        case 2:
          gathering_loop(body);
          break;
        case 3:
        case 4:
          joined(body);
          break;
        default:
          segment(body);
      }
    }
  }

  // In batches that end anywhere.
  void run(TripleFinder& finder) const {
    EventOrdinal ordinal = 0;
    for (const Step& step : steps_) {
      if (step.shape == nullptr) {
        finder.on(events[ordinal++]);
        continue;
      }
      const Execution execution = step.execution(static_cast<ShapeId>(1 + (&step - steps_.data())));
      finder.go_on_with(step.thread, ordinal);
      if (step.shape->kind == RecordShape::Kind::kLoop) {
        ordinal += finder.execute_loop(execution, *step.shape, ordinal, 0);
      } else {
        finder.execute(execution, *step.shape, ordinal, 0);
        ordinal += length(*step.shape);
      }
    }
    EXPECT_EQ(ordinal, events.size());
  }

  // All of them, but for events, which are in `others`.
  void list(std::vector<Execution>& executions, std::vector<const RecordShape*>& shapes) const {
    shapes.push_back(nullptr);
    for (const Step& step : steps_) {
      const auto id = static_cast<ShapeId>(shapes.size());
      shapes.push_back(step.shape.get());
      executions.push_back(step.shape != nullptr ? step.execution(id) : Execution::events(1));
    }
  }

  // Several at a time are expected before they come.
  void run_expected(TripleFinder& finder) const {
    std::vector<Execution> executions;
    std::vector<const RecordShape*> shapes;
    list(executions, shapes);
    EventOrdinal ordinal = 0;
    for (std::span<const Execution> rest = executions; !rest.empty();) {
      const Execution& next = rest.front();
      if (next.shape == 0) {
        finder.on(events[ordinal++]);
        rest = rest.subspan(1);
        continue;
      }
      const std::size_t expected = finder.expect(rest, shapes, ordinal);
      for (const Execution& execution : rest.first(expected)) {
        const RecordShape& shape = *shapes[execution.shape];
        if (shape.kind == RecordShape::Kind::kLoop) {
          ordinal += finder.execute_loop(execution, shape, ordinal, 0);
          continue;
        }
        finder.execute_expected(finder.pattern(execution), execution, shape, ordinal, 0);
        ordinal += length(shape);
      }
      if (expected == 0) {  // of a loop, somebody left out a few accesses
        ASSERT_EQ(shapes[next.shape]->kind, RecordShape::Kind::kLoop);
        finder.go_on_with(next.who, ordinal);
        ordinal += finder.execute_loop(next, *shapes[next.shape], ordinal, 0);
      }
      rest = rest.subspan(std::max<std::size_t>(expected, 1));
    }
    EXPECT_EQ(ordinal, events.size());
  }

  std::vector<Event> events;
  std::vector<Event> others;  // those that are not accesses
  std::size_t loops = 0;
  std::size_t ranges = 0;
  std::size_t calls = 0;

 private:
  // In events, of what is no loop.
  static std::size_t length(const RecordShape& shape) {
    return shape.items.size() + 2 * shape.calls.size();
  }

  struct Step {
    ThreadId thread{};
    std::unique_ptr<RecordShape> shape;  // null: the next event
    std::vector<std::uint64_t> words;
    std::uint32_t items{Execution::kAll};
    std::uint64_t first_round{}, round_count{};  // none: all

    Execution execution(ShapeId id) const {
      return Execution::some_rounds(id, thread, words.data(), items, first_round, round_count);
    }
  };

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  void other(const Event& event) {
    events.push_back(event);
    others.push_back(event);
    steps_.emplace_back();
  }

  // Items at the same address share a word.
  Step& step(const std::vector<Event>& body, std::size_t first_word) {
    Step& made = steps_.emplace_back();
    made.thread = body[0].thread;
    made.shape = std::make_unique<RecordShape>();
    made.words.resize(first_word);
    for (const Event& event : body) {
      auto word = std::find(made.words.begin() + static_cast<std::ptrdiff_t>(first_word),
                            made.words.end(), event.address + 16);
      if (word == made.words.end()) {
        made.words.push_back(event.address + 16);
        word = made.words.end() - 1;
      }
      ShapeItem item{event, static_cast<std::uint32_t>(word - made.words.begin())};
      item.event.address = static_cast<Address>(-16);
      made.shape->items.push_back(item);
    }
    return made;
  }

  // A joined record: some of its accesses are made in calls.
  void joined(const std::vector<Event>& body) {
    Step& made = step(body, 1);
    RecordShape& shape = *made.shape;
    shape.kind = RecordShape::Kind::kJoined;
    for (std::uint32_t at = below(3); at < body.size(); at += below(2)) {
      const std::uint32_t end = at + 1 + below(static_cast<unsigned>(body.size()) - at);
      shape.calls.push_back({.function = 1, .site = 1 + below(kSites), .begin = at, .end = end});
      at = end;
    }
    calls += shape.calls.size();
    const Execution execution = made.execution(1);
    walk_items(
        shape, execution,
        [&](const ShapeCall& call) { events.push_back(enter_of(call, execution)); },
        [&](std::size_t i) { events.push_back(body[i]); },
        [&](const ShapeCall& call) { events.push_back(leave_of(call, execution)); });
  }

  // Some leave the sizes of some accesses to the record.
  void segment(const std::vector<Event>& body) {
    Step& made = step(body, 1);
    made.shape->kind = RecordShape::Kind::kSegment;
    events.insert(events.end(), body.begin(), body.end());
    if (below(3) != 0 || cells_) return;
    Event* event = &events[events.size() - body.size()];
    for (ShapeItem& item : made.shape->items) {
      if (below(2) == 0) {
        event->size = below(41) & 0x3f;
        item.event.size = below(2) & 1;
        item.size_word = static_cast<std::uint32_t>(made.words.size());
        made.words.push_back(event->size + 1);
        ++ranges;
      }
      ++event;
    }
  }

  std::int64_t distance() {
    static constexpr std::int64_t kSteps[] = {0, 4, 4, 8, 8, 8, 16, -4, -8, 2};
    return kSteps[below(std::size(kSteps))];
  }

  void loop(const std::vector<Event>& body) {
    ++loops;
    Step& made = step(body, 2);
    const std::uint64_t rounds = 4 + below(70);
    made.words[1] = rounds;
    made.shape->kind = RecordShape::Kind::kLoop;
    made.shape->always = below(static_cast<unsigned>(body.size()) + 1);
    for (std::size_t i = 0; i < body.size(); ++i) {
      made.shape->steps.push_back({.distance = distance()});
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::size_t count = round + 1 < rounds ? body.size() : made.shape->always;
      for (std::size_t i = 0; i < count; ++i) {
        events.push_back(body[i]);
        events.back().address += round * static_cast<std::uint64_t>(made.shape->steps[i].distance);
      }
    }
  }

  // Some rounds and some items of it, or all.
  void gathering_loop(const std::vector<Event>& body) {
    ++loops;
    Step& made = step(body, 3);
    RecordShape& shape = *made.shape;
    shape.kind = RecordShape::Kind::kLoop;
    shape.always = below(static_cast<unsigned>(body.size()) + 1);
    shape.words = static_cast<std::uint8_t>(made.words.size() - 1);
    const std::uint64_t rounds = 4 + below(40);
    made.words[1] = rounds;
    made.words[2] = below(3);
    for (std::size_t i = 0; i < body.size(); ++i) {
      const bool gathered = i == 0 || below(2) == 0;
      shape.steps.push_back({.distance = gathered ? 0 : distance(), .gathered = gathered});
      if (!gathered) continue;
      shape.items[i].base = shape.words + 1u + shape.round_words++;
      if (i < shape.always) ++shape.last_words;
    }
    if (below(2) == 0) made.items = below((1u << body.size()) - 1) + 1;
    if (below(2) == 0) {
      made.first_round = below(static_cast<unsigned>(rounds));
      made.round_count = 1 + below(static_cast<unsigned>(rounds - made.first_round));
    }
    const std::uint64_t end = made.round_count == 0 ? rounds : made.first_round + made.round_count;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::size_t count = round + 1 < rounds ? body.size() : shape.always;
      for (std::size_t i = 0; i < count; ++i) {
        Event event = body[i];
        if (shape.steps[i].gathered) {
          event.address += Address{8} * below(4);
          made.words.push_back(event.address + 16);
        } else {
          const auto far = static_cast<std::uint64_t>(shape.steps[i].distance);
          event.address += (made.words[2] + round) * far;
        }
        const bool happens = round >= made.first_round && round < end;
        if (happens && (made.items >> i & 1) != 0) events.push_back(event);
      }
    }
  }

  std::mt19937& random_;
  const bool cells_;
  std::vector<Step> steps_;
};

Shape executed_shape(std::mt19937& random, int round) {
  Shape shape;
  shape.threads = 2 + static_cast<unsigned>(random() % 4);
  shape.length = 20 + static_cast<unsigned>(random() % (random() % 4 == 0 ? 1000 : 100));
  shape.span = round % 2 == 0 ? 8 : 40;
  shape.blocks = random() % 2 == 0;
  shape.rebirth = random() % 4 == 0;
  shape.turn = 1 + static_cast<unsigned>(random() % 4);
  shape.cells = random() % 4 == 0;
  return shape;
}

TEST(AvioTwin, ExecutionsGiveTheTriplesOfTheirEvents) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t total = 0;
  std::size_t loops = 0;
  std::size_t ranges = 0;
  std::size_t calls = 0;
  for (int round = 0; round < 10'000; ++round) {
    const Executed executed(random, executed_shape(random, round));
    const unsigned granule = random() % 4 == 0 ? 8 : 1;
    Sink sink(granule);
    TripleFinder finder(granule, sink);
    if (round % 3 == 0) {
      executed.run(finder);
    } else {
      executed.run_expected(finder);
    }
    const auto expected = twin::verdict(executed.events, granule).triples;
    total += expected.size();
    loops += executed.loops;
    ranges += executed.ranges;
    calls += executed.calls;
    ASSERT_EQ(sink.out, expected) << "round " << round << "\n" << print(executed.events);
  }
  EXPECT_GT(total, 20'000u) << "the traces must contain what is compared";
  EXPECT_GT(loops, 5'000u);
  EXPECT_GT(ranges, 5'000u);
  EXPECT_GT(calls, 5'000u);
}

// How often each case was found with each line of P, R and I.
using Counts = std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint64_t>;

Counts counts(Avio& avio) {
  Counts out;
  for (const Finding& finding : avio.finish()) {
    std::vector<std::uint32_t> lines;
    for (const char* role : {"P", "R", "I"}) {
      for (const Step& step : finding.steps) {
        if (step.role == role) lines.push_back(step.place.line);
      }
    }
    out[{finding.summary, lines}] += finding.count;
  }
  return out;
}

// The same by the definition: an access that completes a split is one instance, however many bytes
// it concerns. The line of a site is its number.
Counts counts(const std::vector<Event>& events) {
  std::set<twin::RawTriple> instances;
  for (twin::RawTriple triple : twin::verdict(events, 1).triples) {
    triple.granule = 0;
    instances.insert(triple);
  }
  Counts out;
  for (const auto& [granule, split, p, r, i] : instances) {
    ++out[{std::string(summary(split)), {events[p].site, events[r].site, events[i].site}}];
  }
  return out;
}

TEST(AvioTwin, ExecutionsGiveTheCountsOfTheirEvents) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  Catalog catalog;
  catalog.sites.resize(kSites + 1);
  for (SiteId site = 0; site <= kSites; ++site) catalog.sites[site].line = site;
  catalog.functions.resize(2);
  std::uint64_t total = 0;
  for (int round = 0; round < 2'000; ++round) {
    const Executed executed(random, executed_shape(random, round));
    std::vector<Execution> executions;
    std::vector<const RecordShape*> shapes;
    executed.list(executions, shapes);
    Avio from_events(catalog, {});
    Avio from_executions(catalog, {});
    std::vector<Event> events;
    EventOrdinal ordinal = 0;
    for (int again = 0; again < 3; ++again) {  // what was found before is counted in another way
      events.insert(events.end(), executed.events.begin(), executed.events.end());
      from_events.on(executed.events, ordinal);
      ordinal =
          from_executions.on_executions({executions, executed.others, shapes, false}, ordinal);
    }
    const auto expected = counts(events);
    for (const auto& [which, count] : expected) total += count;
    ASSERT_EQ(counts(from_events), expected) << "round " << round << "\n" << print(executed.events);
    ASSERT_EQ(counts(from_executions), expected) << "round " << round << "\n"
                                                 << print(executed.events);
  }
  EXPECT_GT(total, 10'000u);
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
