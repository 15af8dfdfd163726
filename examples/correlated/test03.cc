// correlated-2014, test 3: {inc_A(x)}_m || {inc_B(x)}_m. No race: one lock for both.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
int x = 0;

void thread_a() {
  const std::lock_guard guard(m);
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
