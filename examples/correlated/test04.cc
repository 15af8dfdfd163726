// correlated-2014, test 4: write_A(x) || write_B(x). A race without a wrong result: either may be
// last. The paper's tool misses it: a write of an independent value replaces the set that x
// belonged to.
#include "../example.h"

namespace {

int x = 0;

void thread_a() {
  x = 1;  // heddle: bug
}

void thread_b() {
  x = 2;  // heddle: bug
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 1 && x != 2) example::fail("x is %d, written were 1 and 2", x);
}
