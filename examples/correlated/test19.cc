// correlated-2014, test 19: swap two correlated variables under their lock. No race.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
int a = 0;
int b = 0;

void swap() {
  const std::lock_guard guard(m);
  const int tmp = a;
  a = b;
  b = tmp;
}

}  // namespace

int main(int argc, char**) {
  a = argc;
  b = a + 1;  // what correlates them
  example::in_parallel(swap, swap);
  if (a != argc || b != argc + 1) example::fail("swapped twice, now %d and %d", a, b);
}
