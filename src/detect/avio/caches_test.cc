// The model of AVIO-H against a naive simulation of the same machine: caches as lists of records,
// every core asked at every step.
#include "detect/avio/caches.h"

#include "base/test_seed.h"

#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

struct NaiveLine {
  std::uint64_t number;
  char state;  // M, E, S or I
  bool last_was_read, downgraded, invalidated;
};

class NaiveMachine {
 public:
  NaiveMachine(unsigned cores, const CacheShape& shape) : shape_(shape), cores_(cores) {}

  // Returns whether the L1 was not enough, and the case (0: none).
  std::pair<bool, int> access(unsigned core, std::uint64_t number, bool write) {
    std::list<NaiveLine>& set = cores_[core][number % shape_.sets()];
    auto mine = set.begin();
    while (mine != set.end() && mine->number != number) ++mine;
    bool miss = true;
    int found = 0;
    if (mine != set.end()) {
      miss = write ? mine->state == 'S' || mine->state == 'I' : mine->state == 'I';
      if (miss) found = judge(*mine, write);
    }
    bool others = false;
    for (unsigned other = 0; other < cores_.size(); ++other) {
      if (other == core) continue;
      for (NaiveLine& theirs : cores_[other][number % shape_.sets()]) {
        if (theirs.number != number || theirs.state == 'I') continue;
        others = true;
        if (write) {
          theirs.state = 'I';
          theirs.invalidated = true;
        } else if (miss && theirs.state != 'S') {
          theirs.state = 'S';
          theirs.downgraded = true;
        }
      }
    }
    NaiveLine line{number, 'S', !write, false, false};
    if (write) {
      line.state = 'M';
    } else if (!miss) {
      line.state = mine->state;
    } else if (!others) {
      line.state = 'E';
    }
    if (mine != set.end()) set.erase(mine);
    set.push_front(line);
    if (set.size() > shape_.ways) set.pop_back();
    return {miss, found};
  }

 private:
  // Figure 6 with the three bits.
  static int judge(const NaiveLine& line, bool write) {
    if (!write) return !line.invalidated ? 0 : line.last_was_read ? 2 : 3;
    if (line.last_was_read) return line.invalidated ? 6 : 0;
    return line.downgraded ? 5 : 0;
  }

  CacheShape shape_;
  std::vector<std::map<std::uint64_t, std::list<NaiveLine>>> cores_;
};

TEST(Caches, RandomTracesMatchTheNaiveMachine) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<int, int> seen;
  for (int round = 0; round < 20'000; ++round) {
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    const unsigned ways = 1 + below(3);
    const CacheShape shape{64 * ways * (1 + below(3)), ways, 64};
    const unsigned cores = 2 + below(4);
    const unsigned lines = 1 + below(8);
    Caches caches(shape);
    NaiveMachine naive(cores, shape);
    for (unsigned n = 1; n < 60; ++n) {
      const unsigned core = below(cores);
      const std::uint64_t line = below(lines);
      const EventKind kind = below(10) == 0  ? EventKind::kRmw
                             : below(2) == 0 ? EventKind::kRead
                                             : EventKind::kWrite;
      const Touch touch = Touch::make(core, kind, n, 0, 0);
      const Caches::Result result = caches.access(core, line, touch);
      std::pair<bool, int> expected;
      if (kind != EventKind::kWrite) expected = naive.access(core, line, false);
      if (kind != EventKind::kRead) {
        const auto [miss, found] = naive.access(core, line, true);
        if (kind == EventKind::kRmw) {
          ASSERT_EQ(found, 0) << "nothing can come between the halves of a read-modify-write";
          expected.first = expected.first || miss;
        } else {
          expected = {miss, found};
        }
      }
      ASSERT_EQ(result.checked, expected.first) << "round " << round << " step " << n;
      const int found = result.split ? static_cast<int>(*result.split) : 0;
      ASSERT_EQ(found, expected.second) << "round " << round << " step " << n;
      ++seen[found];
    }
  }
  for (const int split : {2, 3, 5, 6}) EXPECT_GT(seen[split], 1000) << "case " << split;
}

TEST(CacheShape, IsParsed) {
  const auto shape = parse_cache_shape("32K,4,64");
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->size, 32768u);
  EXPECT_EQ(shape->sets(), 128u);
  EXPECT_EQ(print(*shape), "32 KiB, 4 ways, 64-byte lines");
  for (const char* bad : {"", "32K", "32K,4", "32K,4,63", "32K,4,64,1", "0,4,64", "32X,4,64",
                          "100,4,64", "32K,0,64", "99999999999999999999,4,64", "64,4,64"}) {
    EXPECT_FALSE(parse_cache_shape(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace heddle::avio
