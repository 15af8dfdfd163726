// Stands for: caches, symbol tables, session stores. Short critical sections under many locks,
// hardly contended; a few dependent loads per operation, one allocation in ten of them.
//
// A chained hash map with one mutex per stripe of buckets. Each thread does a reproducible mix of
// increments, look-ups and erasures on keys all threads share. Every increment is worth one,
// wherever it ends up: in the map, or in the count that an erasure handed back.
#include "kernel.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace {

constexpr std::size_t kBuckets = 1u << 14;
constexpr std::size_t kStripes = 64;
constexpr std::uint64_t kKeys = 20'000;

class CountingMap {
 public:
  void increment(std::uint64_t key) {
    const std::size_t bucket = bucket_of(key);
    const std::lock_guard guard(stripe(bucket));
    if (Node* node = find(bucket, key)) {
      ++node->count;
      return;
    }
    buckets_[bucket] = std::make_unique<Node>(key, 1, std::move(buckets_[bucket]));
  }

  std::uint64_t count(std::uint64_t key) {
    const std::size_t bucket = bucket_of(key);
    const std::lock_guard guard(stripe(bucket));
    const Node* node = find(bucket, key);
    return node == nullptr ? 0 : node->count;
  }

  // Removes the key and says what it had counted.
  std::uint64_t erase(std::uint64_t key) {
    const std::size_t bucket = bucket_of(key);
    const std::lock_guard guard(stripe(bucket));
    for (std::unique_ptr<Node>* link = &buckets_[bucket]; *link; link = &(*link)->next) {
      if ((*link)->key != key) continue;
      const std::uint64_t count = (*link)->count;
      *link = std::move((*link)->next);
      return count;
    }
    return 0;
  }

 private:
  struct Node {
    Node(std::uint64_t k, std::uint64_t c, std::unique_ptr<Node> n)
        : key(k), count(c), next(std::move(n)) {}
    std::uint64_t key;
    std::uint64_t count;
    std::unique_ptr<Node> next;
  };

  static std::size_t bucket_of(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15) >> 50;  // the upper 14 bits
  }
  std::mutex& stripe(std::size_t bucket) { return stripes_[bucket % kStripes]; }
  Node* find(std::size_t bucket, std::uint64_t key) {
    Node* node = buckets_[bucket].get();
    while (node != nullptr && node->key != key) node = node->next.get();
    return node;
  }

  std::array<std::mutex, kStripes> stripes_;
  std::array<std::unique_ptr<Node>, kBuckets> buckets_;
};

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 8'000'000, .quick = 5'000});
  const auto map = std::make_unique<CountingMap>();
  std::atomic<std::uint64_t> incremented{0};
  std::atomic<std::uint64_t> erased{0};
  std::atomic<std::uint64_t> impossible{0};

  kernel::run(options.threads, [&](unsigned id) {
    kernel::Random random(id + 5);
    std::uint64_t my_incremented = 0;
    std::uint64_t my_erased = 0;
    const kernel::Share share(options.size, options.threads, id);
    for (std::size_t i = share.begin; i < share.end; ++i) {
      const std::uint64_t draw = random.next();
      const std::uint64_t key = (draw >> 8) % kKeys;
      if (draw % 10 < 6) {
        map->increment(key);
        ++my_incremented;
      } else if (draw % 10 < 9) {
        if (map->count(key) > options.size) impossible.fetch_add(1);
      } else {
        my_erased += map->erase(key);
      }
    }
    incremented.fetch_add(my_incremented);
    erased.fetch_add(my_erased);
  });

  std::uint64_t present = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key) present += map->count(key);
  return kernel::verdict("hashmap", options, impossible == 0 && present + erased == incremented);
}
