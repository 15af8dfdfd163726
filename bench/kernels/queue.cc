// Stands for: pipelines and servers that hand work from thread to thread. One contended mutex, two
// condition variables, much blocking and waking, and a burst of private work for every item.
//
// A bounded queue between producers (half of the threads, at least one) and consumers (at least
// one). Items of one producer must reach any one consumer in order, and every item exactly one.
#include "kernel.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace {

struct Item {
  unsigned producer = 0;
  std::uint64_t serial = 0;
};

class BoundedQueue {
 public:
  explicit BoundedQueue(unsigned producers) : open_producers_(producers) {}

  void put(Item item) {
    std::unique_lock guard(lock_);
    not_full_.wait(guard, [&] { return size_ < kCapacity; });
    items_[(first_ + size_++) % kCapacity] = item;
    not_empty_.notify_one();
  }

  // False when the queue is empty and every producer has closed it.
  bool take(Item& item) {
    std::unique_lock guard(lock_);
    not_empty_.wait(guard, [&] { return size_ > 0 || open_producers_ == 0; });
    if (size_ == 0) return false;
    item = items_[first_];
    first_ = (first_ + 1) % kCapacity;
    --size_;
    not_full_.notify_one();
    return true;
  }

  void close() {
    const std::lock_guard guard(lock_);
    if (--open_producers_ == 0) not_empty_.notify_all();
  }

 private:
  static constexpr std::size_t kCapacity = 256;
  std::mutex lock_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  Item items_[kCapacity];
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  unsigned open_producers_;
};

// The private work an item stands for.
std::uint64_t digest(Item item) {
  kernel::Random random(item.serial * 64 + item.producer);
  std::uint64_t sum = 0;
  for (int i = 0; i < 256; ++i) sum += random.next();
  return sum;
}

struct Tally {
  std::uint64_t items = 0;
  std::uint64_t sum = 0;
  bool in_order = true;
};

}  // namespace

int main(int argc, char** argv) {
  kernel::Options options = kernel::parse(argc, argv, {.full = 600'000, .quick = 1'000});
  options.threads = std::max(options.threads, 2u);
  const unsigned producers = options.threads / 2;

  BoundedQueue queue(producers);
  std::vector<Tally> made(options.threads);
  std::vector<Tally> taken(options.threads);
  kernel::run(options.threads, [&](unsigned id) {
    if (id < producers) {
      const kernel::Share share(options.size, producers, id);
      for (std::uint64_t serial = 0; serial < share.end - share.begin; ++serial) {
        const Item item{id, serial};
        made[id].sum += digest(item);
        ++made[id].items;
        queue.put(item);
      }
      queue.close();
      return;
    }
    std::vector<std::uint64_t> expected_at_least(producers, 0);
    for (Item item; queue.take(item);) {
      taken[id].sum += digest(item);
      ++taken[id].items;
      if (item.serial < expected_at_least[item.producer]) taken[id].in_order = false;
      expected_at_least[item.producer] = item.serial + 1;
    }
  });

  Tally balance;
  for (const Tally& tally : made) balance.sum += tally.sum, balance.items += tally.items;
  for (const Tally& tally : taken) {
    balance.sum -= tally.sum;
    balance.items -= tally.items;
    balance.in_order = balance.in_order && tally.in_order;
  }
  return kernel::verdict("queue", options,
                         balance.sum == 0 && balance.items == 0 && balance.in_order);
}
