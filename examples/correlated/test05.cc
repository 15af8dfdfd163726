// correlated-2014, test 5: {inc_A(x)}_m {inc_A(x)}_m || {inc_B(x)}_m. No race: two units, each
// whole.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
int x = 0;

void thread_a() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
}

void thread_b() {
  const std::lock_guard guard(m);
  x = x + 1;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 3) example::fail("3 increments, x is %d", x);
}
