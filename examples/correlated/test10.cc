// correlated-2014, test 10: {inc_A(x)}_m || {inc_B(x)}_m A->B inc_B(x). No race: after the signal
// only B is left, and needs no lock.
#include "../example.h"
#include "signal.h"

#include <mutex>

namespace {

std::mutex m;
Signal a_to_b;
int x = 0;

void thread_a() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  a_to_b.send();
}

void thread_b() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  a_to_b.await();
  x = x + 1;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 3) example::fail("3 increments, x is %d", x);
}
