// A sequence lock done right, after Boehm, "Can seqlocks get along with programming language memory
// models?" (2012): the data are relaxed atomics, the fences stand where the ordering is needed.
// A reader is torn apart all the time, notices, and reads again. Correct under every schedule.
#include "../example.h"

#include <atomic>

#include <sched.h>

namespace {

struct Point {
  int x;
  int y;
};

class SeqlockedPoint {
 public:
  // One writer.
  void store(Point point) {
    const unsigned sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    x_.store(point.x, std::memory_order_relaxed);
    y_.store(point.y, std::memory_order_relaxed);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  Point load() const {
    for (;;) {
      const unsigned before = sequence_.load(std::memory_order_acquire);
      const Point point{x_.load(std::memory_order_relaxed), y_.load(std::memory_order_relaxed)};
      std::atomic_thread_fence(std::memory_order_acquire);
      const unsigned after = sequence_.load(std::memory_order_relaxed);
      if (before == after && before % 2 == 0) return point;
      sched_yield();
    }
  }

 private:
  std::atomic<unsigned> sequence_{0};
  std::atomic<int> x_{0};
  std::atomic<int> y_{0};
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 4);
  SeqlockedPoint shared;
  int torn[2] = {0, 0};
  const auto read = [&](int* count) {
    int last = 0;
    for (int i = 0; i < rounds; ++i) {
      const Point point = shared.load();
      if (point.y != -point.x || point.x < last) ++*count;
      last = point.x;
    }
  };
  example::in_parallel(
      [&] {
        for (int i = 1; i <= rounds; ++i) shared.store({i, -i});
      },
      [&] { read(&torn[0]); }, [&] { read(&torn[1]); });

  if (torn[0] + torn[1] > 0) example::fail("%d points were torn or went back", torn[0] + torn[1]);
}
