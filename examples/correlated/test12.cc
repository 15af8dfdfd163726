// correlated-2014, test 12: {inc_A(x)}_m || {inc_B(x)}_m A->B B->A read_A(x) || read_B(x). No race:
// after both signals there are only reads.
#include "../example.h"
#include "signal.h"

#include <mutex>

namespace {

std::mutex m;
Signal a_to_b;
Signal b_to_a;
int x = 0;
int seen_a = 0;
int seen_b = 0;

void thread_a() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  a_to_b.send();
  b_to_a.await();
  seen_a = x;
}

void thread_b() {
  {
    const std::lock_guard guard(m);
    x = x + 1;
  }
  b_to_a.send();
  a_to_b.await();
  seen_b = x;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (seen_a != 2 || seen_b != 2) example::fail("x is %d, A saw %d, B %d", x, seen_a, seen_b);
}
