// SPLASH-2 FMM, interactions.C: children count themselves in under a lock, the parent spins on the
// count without one. AVIO figure 2(a). Correct: the race on `synch` is the synchronisation.
#include "../example.h"

#include <atomic>
#include <mutex>

#include <sched.h>

namespace {

constexpr int kChildren = 3;

struct Box {
  std::mutex lock;
  volatile int synch = 0;
  int num_children = kChildren;
  long expansion[kChildren] = {};
};

// As in the original, ordering rests on strong hardware; the fences only hold back the compiler.
void child(Box* parent, int index, int particles) {
  for (int i = 1; i <= particles; ++i) parent->expansion[index] += i;
  std::atomic_signal_fence(std::memory_order_release);
  const std::lock_guard guard(parent->lock);
  parent->synch = parent->synch + 1;
}

long sum_of_children(Box* box) {
  while (box->synch != box->num_children) sched_yield();
  std::atomic_signal_fence(std::memory_order_acquire);
  long sum = 0;
  for (const long part : box->expansion) sum += part;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int particles = example::rounds(argc, argv, 4);
  Box box;
  long sum = 0;
  example::in_parallel([&] { sum = sum_of_children(&box); }, [&] { child(&box, 0, particles); },
                       [&] { child(&box, 1, particles); }, [&] { child(&box, 2, particles); });

  const long expected = kChildren * (particles * (particles + 1L) / 2);
  if (sum != expected) example::fail("parent summed %ld, its children hold %ld", sum, expected);
}
