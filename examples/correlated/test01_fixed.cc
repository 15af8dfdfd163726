// Test 1 put right: {read_A(x)}_m || {inc_B(x)}_m.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
int x = 0;
int seen = 0;

void thread_a() {
  const std::lock_guard guard(m);
  seen = x;
}

void thread_b() {
  const std::lock_guard guard(m);
  x = x + 1;
}

}  // namespace

int main() {
  example::in_parallel(thread_a, thread_b);
  if (x != 1 || seen > 1) example::fail("x is %d, A saw %d", x, seen);
}
