// The work-stealing deque of Chase and Lev, with the memory orders of Le, Pop, Cohen and Zappa
// Nardelli, "Correct and efficient work-stealing for weak memory models" (2013). The owner pushes
// and takes at the bottom, thieves steal at the top, and only the last task is fought over. The
// tasks themselves are plain memory. Correct under every schedule.
#include "../example.h"

#include <atomic>
#include <memory>

#include <sched.h>

namespace {

struct Task {
  int input = 0;
  int runs = 0;
  int output = 0;
};

// Of fixed capacity: the owner never has more tasks than fit.
class Deque {
 public:
  static constexpr long kCapacity = 4;

  bool push(Task* task) {
    const long bottom = bottom_.load(std::memory_order_relaxed);
    const long top = top_.load(std::memory_order_acquire);
    if (bottom - top == kCapacity) return false;
    slot(bottom).store(task, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    bottom_.store(bottom + 1, std::memory_order_relaxed);
    return true;
  }

  Task* take() {
    const long bottom = bottom_.load(std::memory_order_relaxed) - 1;
    bottom_.store(bottom, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    long top = top_.load(std::memory_order_relaxed);
    if (top > bottom) {
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return nullptr;
    }
    Task* task = slot(bottom).load(std::memory_order_relaxed);
    if (top < bottom) return task;
    if (!win(top)) task = nullptr;
    bottom_.store(bottom + 1, std::memory_order_relaxed);
    return task;
  }

  Task* steal() {
    long top = top_.load(std::memory_order_acquire);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const long bottom = bottom_.load(std::memory_order_acquire);
    if (top >= bottom) return nullptr;
    Task* task = slot(top).load(std::memory_order_relaxed);
    return win(top) ? task : nullptr;
  }

 private:
  bool win(long top) {
    return top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed);
  }
  std::atomic<Task*>& slot(long index) { return slots_[index % kCapacity]; }

  std::atomic<long> top_{0};
  std::atomic<long> bottom_{0};
  std::atomic<Task*> slots_[kCapacity] = {};
};

void execute(Task* task) {
  ++task->runs;
  task->output = 2 * task->input + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = example::rounds(argc, argv, 6);
  const auto tasks = std::make_unique<Task[]>(count);
  Deque deque;
  std::atomic<int> left{count};

  const auto finish = [&](Task* task) {
    if (task == nullptr) {
      sched_yield();
      return;
    }
    execute(task);
    left.fetch_sub(1, std::memory_order_release);
  };
  const auto own = [&] {
    for (int i = 0; i < count; ++i) {
      tasks[i].input = i;
      while (!deque.push(&tasks[i])) finish(deque.take());
    }
    while (left.load(std::memory_order_acquire) > 0) finish(deque.take());
  };
  const auto thieve = [&] {
    while (left.load(std::memory_order_acquire) > 0) finish(deque.steal());
  };
  example::in_parallel(own, thieve, thieve);

  for (int i = 0; i < count; ++i) {
    if (tasks[i].runs != 1) example::fail("task %d ran %d times", i, tasks[i].runs);
    if (tasks[i].output != 2 * i + 1) example::fail("task %d gave %d", i, tasks[i].output);
  }
}
