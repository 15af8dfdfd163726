// correlated-2014, test 9: inc_A(x) A->B inc_B(x). No race: B waits for A.
#include "../example.h"
#include "signal.h"

namespace {

Signal a_to_b;
int x = 0;

void thread_a() {
  x = x + 1;
  a_to_b.send();
}

void thread_b() {
  a_to_b.await();
  x = x + 1;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 2) example::fail("2 increments, x is %d", x);
}
