// Steady rounds against the same rounds one access at a time: threads that go through arrays by
// turns, in loops of random bodies, once as executions and once as events.
#include "detect/svd/online.h"
#include "trace/text.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr int kSeeds = 4'000;
constexpr int kBodies = 5;
constexpr std::uint32_t kElements = 120;
constexpr std::uint32_t kArrays = 3;
// An array crosses the end of a page; between them there is room for what is beyond their ends.
constexpr Address kFirst = 0x10000 - 8 * 40;
constexpr Address kApart = 0x4000 + 8 * 4;

class Sweeps {
 public:
  explicit Sweeps(unsigned seed) : random_(seed) {
    std::string sites;
    std::string segments =
        "function 1 f registers=8\n"
        "segment 1 in f block=0 index=0\n"
        "  ends fall\n";
    shapes_ = {nullptr, segment(1)};
    for (int body = 0; body < kBodies; ++body) {
      RecordShape& shape = *segment(static_cast<SegmentId>(body + 2));
      segments += fmt::format("segment {} in f block={} index=0 parents={}\n", body + 2, body + 1,
                              body + 1);
      const std::uint32_t count = body == 0 ? 2 : 1 + below(5);
      std::vector<std::uint32_t> read;
      for (std::uint32_t i = 0; i < count; ++i) {
        const bool writes = body == 0 ? i == 1 : i > 0 && below(3) == 0;
        const SiteId site = next_site_++;
        sites += fmt::format("site {} @{} kind={}\n", site, site, writes ? "w" : "r");
        if (writes) {
          std::string from;
          for (const std::uint32_t reg : read) {
            if (body == 0 || below(4) != 0)
              from += fmt::format("{}%{}", from.empty() ? "" : " ", reg);
          }
          segments += fmt::format("  access @#{} value=({})\n", site, from);
        } else {
          segments += fmt::format("  access @#{} %{}\n", site, i);
          read.push_back(i);
        }
        ShapeItem item;
        item.event.kind = writes ? EventKind::kWrite : EventKind::kRead;
        item.event.site = site;
        item.event.size = 8;
        item.base = i + 1;
        shape.items.push_back(item);
      }
      segments += body % 2 == 0 || read.empty() ? "  ends branch from=()\n"
                                                : fmt::format("  ends branch from=(%{})\n", read[0]);
      shapes_.push_back(&shape);
    }
    trace_ = trace_from_text(sites + segments + "t0: segment 1\n");
    for (const ThreadId thread : {0u, 1u}) add(1, thread, {});
    for (std::uint32_t turn = 2 + below(14); turn > 0; --turn) sweep(below(2));
    // Whatever is remembered of memory shows where all of it is read and written once more.
    for (const ThreadId thread : {0u, 1u, 0u}) {
      for (std::uint32_t array = 0; array < kArrays; ++array) {
        for (std::uint32_t i = 0; i < kElements; ++i)
          add(2, thread, {at(array, i), at((array + thread) % kArrays, i)});
      }
    }
  }

  struct Outcome {
    std::vector<std::tuple<EventOrdinal, EventOrdinal, EventOrdinal>> violations;
    std::size_t ended = 0;
    std::size_t created = 0;
    bool operator==(const Outcome&) const = default;
  };

  Outcome as_executions() const {
    Outcome out;
    Online online(trace_.catalog, OnlineOptions());
    online.on({executions_, {}, shapes_, true}, 0, [&] { take(online, out); });
    return finished(online, out);
  }
  Outcome as_events() const {
    std::vector<Event> events;
    for (const Execution& execution : executions_) {
      const RecordShape& shape = *shapes_[execution.shape];
      events.push_back(segment_of(shape.id, execution.who));
      for (const ShapeItem& item : shape.items) {
        events.push_back(item.event);
        events.back().thread = execution.who;
        events.back().address = address_of(item, execution.words);
      }
    }
    Outcome out;
    Online online(trace_.catalog, OnlineOptions());
    for (std::size_t done = 0; done < events.size();) {
      done += online.on(std::span(std::as_const(events)).subspan(done), done);
      take(online, out);
    }
    return finished(online, out);
  }

 private:
  std::uint32_t below(std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_);
  }
  static Address at(std::uint32_t array, std::uint32_t element) {
    return kFirst + array * kApart + Address{8} * element;
  }
  RecordShape* segment(SegmentId id) {
    auto shape = std::make_unique<RecordShape>();
    shape->kind = RecordShape::Kind::kSegment;
    shape->id = id;
    return owned_.emplace_back(std::move(shape)).get();
  }
  void add(ShapeId shape, ThreadId thread, std::vector<Address> words) {
    words.insert(words.begin(), 0);
    executions_.push_back(
        Execution::of(shape, thread, words_.emplace_back(std::move(words)).data()));
  }

  // One or several loops of a thread, mostly of neighbours in a few arrays.
  void sweep(ThreadId thread) {
    const ShapeId shape = 2 + below(kBodies);
    const std::size_t count = shapes_[shape]->items.size();
    const std::uint32_t steps = below(8) == 0 ? 2 : 1;
    std::vector<std::pair<Address, std::uint32_t>> items;  // from where, by which step
    const std::uint32_t first = below(3) == 0 ? 44 : 4;
    const std::uint32_t spread = below(3) == 0 ? 24 : 4;
    for (std::size_t i = 0; i < count; ++i) {
      const bool stays = below(i == 0 ? 3 : 12) == 0;
      items.emplace_back(at(below(kArrays), first + below(spread)), stays ? 0 : steps);
    }
    for (std::uint32_t times = 1 + below(3); times > 0; --times) {
      const std::uint32_t rounds = 1 + below(26) * (3 - steps);
      for (std::uint32_t round = 0; round < rounds; ++round) {
        std::vector<Address> words;
        for (const auto& [from, step] : items) words.push_back(from + Address{8} * step * round);
        add(shape, thread, std::move(words));
      }
    }
  }

  static void take(Online& online, Outcome& out) {
    for (const Violation& violation : online.take_violations()) {
      out.violations.emplace_back(violation.inside.ordinal, violation.remote.ordinal,
                                  violation.store.ordinal);
    }
  }
  static Outcome finished(const Online& online, Outcome& out) {
    std::sort(out.violations.begin(), out.violations.end());
    out.ended = online.units_ended_by_sharing();
    out.created = online.units_created();
    return out;
  }

  std::mt19937 random_;
  SiteId next_site_ = 1;
  Trace trace_;
  std::vector<std::unique_ptr<RecordShape>> owned_;
  std::vector<const RecordShape*> shapes_;
  std::deque<std::vector<Address>> words_;
  std::vector<Execution> executions_;
};

TEST(SteadyRounds, LeaveWhatSingleAccessesLeave) {
  std::size_t violations = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Sweeps sweeps(static_cast<unsigned>(seed));
    const Sweeps::Outcome expected = sweeps.as_events();
    const Sweeps::Outcome seen = sweeps.as_executions();
    ASSERT_EQ(seen.violations, expected.violations) << "seed " << seed;
    ASSERT_EQ(seen.ended, expected.ended) << "seed " << seed;
    ASSERT_EQ(seen.created, expected.created) << "seed " << seed;
    violations += seen.violations.size();
  }
  EXPECT_GT(violations, std::size_t{kSeeds});
}

}  // namespace
}  // namespace heddle::svd
