// A test-and-set lock, a ticket lock and a hand-made barrier on atomics.
#include "../programs/control.h"

#include <atomic>

static std::atomic_flag flag = ATOMIC_FLAG_INIT;
static std::atomic<int> next_ticket, serving, arrived, phase;
static int by_flag, by_ticket;
constexpr int kThreads = 4;

static void* worker(void* argument) {
  for (int round = 0; round < 5; ++round) {
    while (flag.test_and_set(std::memory_order_acquire)) {
    }
    ++by_flag;
    flag.clear(std::memory_order_release);

    const int ticket = next_ticket.fetch_add(1);
    while (serving.load() != ticket) {
    }
    ++by_ticket;
    serving.store(ticket + 1);

    const int before = phase.load();
    if (arrived.fetch_add(1) + 1 == kThreads) {
      arrived.store(0);
      phase.store(before + 1);
    } else {
      while (phase.load() == before) {
      }
    }
    CHECK(by_flag >= kThreads * (round + 1));
  }
  return argument;
}

int main() {
  run_threads(kThreads, worker);
  CHECK(by_flag == 20 && by_ticket == 20);
  return done();
}
