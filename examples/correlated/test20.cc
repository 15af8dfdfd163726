// correlated-2014, test 20: swap two variables that have nothing in common, each under a lock of
// its own. No race; the paper's tool reports one, for it swaps the sets together with the values.
#include "../example.h"

#include <mutex>

namespace {

std::mutex lock_a;
std::mutex lock_b;
int a = 10;
int b = 20;

void increment_a() {
  const std::lock_guard guard(lock_a);
  a = a + 1;
}

void increment_b() {
  const std::lock_guard guard(lock_b);
  b = b + 1;
}

void swap() {
  const std::lock_guard guard_a(lock_a);
  const std::lock_guard guard_b(lock_b);
  const int tmp = a;
  a = b;
  b = tmp;
}

void increment_swap_increment() {
  increment_a();
  swap();
  increment_b();
}

}  // namespace

int main() {
  example::in_parallel(increment_swap_increment, increment_swap_increment);
  if (a + b != 34) example::fail("10 + 20 and four increments make %d + %d", a, b);
}
