// correlated-2014, test 1: read_A(x) || inc_B(x). A race without a wrong result: A may see either.
#include "../example.h"

namespace {

int x = 0;
int seen = 0;

void thread_a() {
  seen = x;  // heddle: bug
}

void thread_b() {
  x = x + 1;  // heddle: bug
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 1 || seen > 1) example::fail("x is %d, A saw %d", x, seen);
}
