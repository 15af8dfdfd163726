// Test 4 put right: {write_A(x)}_m || {write_B(x)}_m.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
int x = 0;

void thread_a() {
  const std::lock_guard guard(m);
  x = 1;
}

void thread_b() {
  const std::lock_guard guard(m);
  x = 2;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 1 && x != 2) example::fail("x is %d, written were 1 and 2", x);
}
