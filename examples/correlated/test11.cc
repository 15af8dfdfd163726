// correlated-2014, test 11: {inc_A(x)}_m || {inc_B(x)}_m A->B read_A(x) || read_B(x). A race:
// nothing orders A's unlocked read and B's increment. No wrong result: A may see either.
#include "../example.h"
#include "signal.h"

#include <mutex>

namespace {

std::mutex m;
Signal a_to_b;
int x = 0;
int seen_a = 0;
int seen_b = 0;

void thread_a() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  a_to_b.send();
  seen_a = x;  // heddle: bug
}

void thread_b() {
  {
    const std::lock_guard guard(m);
    x = x + 1;  // heddle: bug
  }
  a_to_b.await();
  seen_b = x;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (seen_a < 1 || seen_b != 2) example::fail("x is %d, A saw %d, B %d", x, seen_a, seen_b);
}
