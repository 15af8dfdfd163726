// correlated-2014, test 2: read_A(x) || read_B(x). No race: nobody writes.
#include "../example.h"

namespace {

int x = 7;
int seen_a = 0;
int seen_b = 0;

void thread_a() {
  seen_a = x;
}

void thread_b() {
  seen_b = x;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (seen_a != 7 || seen_b != 7) example::fail("x is 7, A saw %d, B %d", seen_a, seen_b);
}
