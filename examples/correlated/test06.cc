// correlated-2014, test 6: {inc_A(x)}_{m,n} || {inc_B(x)}_m. No race: m is common.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
std::mutex n;
int x = 0;

void thread_a() {
  const std::lock_guard guard_m(m);
  const std::lock_guard guard_n(n);
  x = x + 1;
}

void thread_b() {
  const std::lock_guard guard(m);
  x = x + 1;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 2) example::fail("2 increments, x is %d", x);
}
