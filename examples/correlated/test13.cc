// correlated-2014, test 13: {inc_A(x)}_m || {inc_B(x)}_m barrier read_A(x) || read_B(x). No race:
// after the barrier there are only reads.
#include "../example.h"

#include <mutex>

#include <pthread.h>

namespace {

std::mutex m;
pthread_barrier_t barrier;
int x = 0;

void increment_then_read(int* seen) {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  pthread_barrier_wait(&barrier);
  *seen = x;
}

}  // namespace

int main() {
  pthread_barrier_init(&barrier, nullptr, 2);
  int seen_a = 0;
  int seen_b = 0;
  example::in_parallel([&] { increment_then_read(&seen_a); },
                       [&] { increment_then_read(&seen_b); });
  pthread_barrier_destroy(&barrier);
  if (seen_a != 2 || seen_b != 2) example::fail("x is %d, A saw %d, B %d", x, seen_a, seen_b);
}
