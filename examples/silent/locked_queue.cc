// A bounded queue: one mutex, two condition variables. Correct under every schedule.
#include "../example.h"

#include <condition_variable>
#include <mutex>

namespace {

constexpr int kCapacity = 2;

class Queue {
 public:
  void put(int item) {
    std::unique_lock guard(lock_);
    not_full_.wait(guard, [this] { return size_ < kCapacity; });
    items_[(first_ + size_) % kCapacity] = item;
    ++size_;
    not_empty_.notify_one();
  }

  int take() {
    std::unique_lock guard(lock_);
    not_empty_.wait(guard, [this] { return size_ > 0; });
    const int item = items_[first_];
    first_ = (first_ + 1) % kCapacity;
    --size_;
    not_full_.notify_one();
    return item;
  }

 private:
  std::mutex lock_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  int items_[kCapacity] = {};
  int first_ = 0;
  int size_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int items = example::rounds(argc, argv, 4);
  Queue queue;
  long sums[2] = {0, 0};
  const auto produce = [&](int sign) {
    for (int i = 1; i <= items; ++i) queue.put(sign * i);
  };
  const auto consume = [&](long* sum) {
    for (int i = 0; i < items; ++i) *sum += queue.take();
  };
  example::in_parallel([&] { produce(1); }, [&] { produce(-1); }, [&] { consume(&sums[0]); },
                       [&] { consume(&sums[1]); });

  if (sums[0] + sums[1] != 0)
    example::fail("the consumers' sums are off by %ld", sums[0] + sums[1]);
}
