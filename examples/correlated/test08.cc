// correlated-2014, test 8: {inc_A(x)}_m {inc_A(x)}_n || {inc_B(x)}_m. A race: A's second increment
// holds the wrong lock.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
std::mutex n;
int x = 0;

void thread_a() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  {
    const std::lock_guard guard(n);
    x = x + 1;  // heddle: P R I
  }
}

void thread_b() {
  const std::lock_guard guard(m);
  x = x + 1;  // heddle: P R I
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 3) example::fail("3 increments, x is %d", x);
}
