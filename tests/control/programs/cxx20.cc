// The synchronisation of the C++ library: some of it goes through pthread_*, some straight to
// futex.
#define _GNU_SOURCE 1
#include "control.h"

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

int main() {
  constexpr int kThreads = 4;
  std::latch latch(kThreads);
  std::barrier barrier(kThreads);
  std::counting_semaphore<2> semaphore(2);
  std::binary_semaphore binary(0);
  std::shared_mutex shared;
  std::timed_mutex timed;
  std::recursive_mutex recursive;
  std::condition_variable condition;
  std::mutex mutex;
  std::atomic<int> gate{0}, inside{0};
  bool ready = false;
  long value = 0;
  std::vector<int> phase(kThreads);
  std::vector<std::jthread> threads;
  for (int me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      latch.arrive_and_wait();
      gate.wait(0);
      for (int round = 1; round <= 5; ++round) {
        phase[me] = round;
        barrier.arrive_and_wait();
        for (int other : phase) CHECK(other == round);
        barrier.arrive_and_wait();
      }
      {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return ready; });
      }
      for (int i = 0; i < 10; ++i) {
        semaphore.acquire();
        CHECK(++inside <= 2);
        std::this_thread::yield();
        --inside;
        semaphore.release();
        if (me == 0) {
          std::unique_lock lock(shared);
          ++value;
        } else {
          std::shared_lock lock(shared);
          CHECK(value >= 0);
        }
        std::scoped_lock both(recursive, timed);
      }
      if (me == 1) {
        std::unique_lock lock(mutex);
        CHECK(!condition.wait_for(lock, std::chrono::hours(1), [] { return false; }));
        CHECK(!binary.try_acquire_for(std::chrono::seconds(5)));
        binary.release();
      }
      if (me == 2) {
        binary.acquire();
        binary.release();
      }
    });
  }
  latch.wait();
  gate = 1;
  gate.notify_all();
  {
    std::lock_guard lock(mutex);
    ready = true;
  }
  condition.notify_all();
  auto future = std::async(std::launch::async, [] {
    std::this_thread::sleep_for(std::chrono::minutes(10));
    return 7;
  });
  CHECK(future.wait_for(std::chrono::seconds(1)) == std::future_status::timeout);
  CHECK(future.get() == 7);
  threads.clear();
  CHECK(value == 10);
  return done();
}
