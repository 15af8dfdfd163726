// Stands for: lock-free graph code. No lock at all: threads race by compare-and-swap for every
// vertex, indices are drawn from shared counters, and the memory order is written out.
//
// Breadth-first search over a random graph, level by level. A vertex belongs to whoever swaps its
// level from "unseen"; the winner appends it to the next frontier.
#include "kernel.h"

#include <algorithm>
#include <atomic>

namespace {

constexpr unsigned kDegree = 8;
constexpr std::size_t kChunk = 64;
constexpr std::int32_t kUnseen = -1;

using Vertex = std::uint32_t;

struct Search {
  explicit Search(unsigned threads, std::size_t size)
      : edges(size * kDegree), level(size), frontier(size), next(size), barrier(threads) {
    kernel::Random random(7);
    for (Vertex& target : edges) target = static_cast<Vertex>(random.below(size));
    for (std::atomic<std::int32_t>& l : level) l.store(kUnseen, std::memory_order_relaxed);
    level[0].store(0, std::memory_order_relaxed);
    frontier[0] = 0;
    frontier_size = 1;
  }

  void work(unsigned id) {
    for (std::int32_t depth = 1; frontier_size > 0; ++depth) {
      for (;;) {
        const std::size_t begin = cursor.fetch_add(kChunk, std::memory_order_relaxed);
        if (begin >= frontier_size) break;
        const std::size_t end = std::min(begin + kChunk, frontier_size);
        for (std::size_t i = begin; i < end; ++i) expand(frontier[i], depth);
      }
      barrier.wait();
      if (id == 0) {
        frontier.swap(next);
        frontier_size = next_size.exchange(0, std::memory_order_relaxed);
        cursor.store(0, std::memory_order_relaxed);
      }
      barrier.wait();
    }
  }

  void expand(Vertex vertex, std::int32_t depth) {
    for (unsigned e = 0; e < kDegree; ++e) {
      const Vertex target = edges[std::size_t{vertex} * kDegree + e];
      std::int32_t expected = kUnseen;
      if (level[target].load(std::memory_order_relaxed) != kUnseen) continue;
      if (!level[target].compare_exchange_strong(expected, depth, std::memory_order_relaxed)) {
        continue;
      }
      next[next_size.fetch_add(1, std::memory_order_relaxed)] = target;
    }
  }

  // Levels are shortest distances: no edge skips a level, and who is not the source has a parent.
  bool right() const {
    std::vector<bool> has_parent(level.size());
    has_parent[0] = true;
    for (std::size_t v = 0; v < level.size(); ++v) {
      const std::int32_t here = level[v].load(std::memory_order_relaxed);
      if (here == kUnseen) continue;
      for (unsigned e = 0; e < kDegree; ++e) {
        const Vertex target = edges[v * kDegree + e];
        const std::int32_t there = level[target].load(std::memory_order_relaxed);
        if (there == kUnseen || there > here + 1) return false;
        if (there == here + 1) has_parent[target] = true;
      }
    }
    for (std::size_t v = 0; v < level.size(); ++v) {
      if (level[v].load(std::memory_order_relaxed) != kUnseen && !has_parent[v]) return false;
    }
    return true;
  }

  std::vector<Vertex> edges;
  std::vector<std::atomic<std::int32_t>> level;
  std::vector<Vertex> frontier;
  std::vector<Vertex> next;
  std::size_t frontier_size = 0;
  std::atomic<std::size_t> next_size{0};
  std::atomic<std::size_t> cursor{0};
  kernel::Barrier barrier;
};

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 2'000'000, .quick = 2'000});
  Search search(options.threads, options.size);
  kernel::run(options.threads, [&](unsigned id) { search.work(id); });
  return kernel::verdict("bfs", options, search.right());
}
