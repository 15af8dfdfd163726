// correlated-2014, test 0: inc_A(x) || inc_B(x). A race, and an update lost.
#include "../example.h"

namespace {

int x = 0;

void thread_a() {
  x = x + 1;  // heddle: P R I
}

void thread_b() {
  x = x + 1;  // heddle: P R I
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 2) example::fail("2 increments, x is %d", x);
}
