// Stands for: code that lives in linked structures (interpreters, schedulers, old servers). Every
// load waits for the one before it, the cache misses, and the instructions around it are few.
//
// A ring of nodes linked in random order. In a round every thread walks the whole ring and leaves
// in each of its own nodes (every THREADS-th) the sum of what the node's neighbours held in the
// round before. Adding neighbours on a ring doubles the total, so the total is known.
#include "kernel.h"

#include <algorithm>
#include <numeric>

namespace {

constexpr unsigned kRounds = 6;

struct Node {
  Node* next = nullptr;
  Node* previous = nullptr;
  unsigned owner = 0;
  std::uint64_t value[2] = {0, 0};  // of this round and the one before, by parity
};

Node* link_at_random(std::vector<Node>& nodes, unsigned threads) {
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  kernel::Random random(6);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Node& node = nodes[order[i]];
    Node& next = nodes[order[(i + 1) % order.size()]];
    node.next = &next;
    next.previous = &node;
    node.owner = static_cast<unsigned>(i % threads);
    node.value[0] = i % 7;
  }
  return &nodes[order[0]];
}

void walk(Node* first, unsigned id, unsigned round) {
  const unsigned before = round % 2;
  Node* node = first;
  do {
    if (node->owner == id) {
      node->value[1 - before] = node->previous->value[before] + node->next->value[before];
    }
    node = node->next;
  } while (node != first);
}

std::uint64_t total(const std::vector<Node>& nodes, unsigned round) {
  std::uint64_t sum = 0;
  for (const Node& node : nodes) sum += node.value[round % 2];
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 600'000, .quick = 2'000});
  std::vector<Node> nodes(options.size);
  Node* first = link_at_random(nodes, options.threads);
  const std::uint64_t start = total(nodes, 0);

  kernel::Barrier barrier(options.threads);
  kernel::run(options.threads, [&](unsigned id) {
    for (unsigned round = 0; round < kRounds; ++round) {
      walk(first, id, round);
      barrier.wait();
    }
  });
  return kernel::verdict("list", options, total(nodes, kRounds) == start << kRounds);
}
