// SPLASH-2 Barnes: a cell is ready when its flag says so, and the waiter spins on the flag.
// AVIO figures 2(b) and 3(b). Correct: the loop is there to be interleaved.
#include "../example.h"

#include <atomic>

#include <sched.h>

namespace {

constexpr int kCells = 3;

struct Cell {
  volatile bool done = false;
  int mass = 0;
};

// As in the original, ordering rests on strong hardware; the fences only hold back the compiler.
void compute(Cell* cells, int rounds) {
  for (int i = 0; i < kCells; ++i) {
    for (int r = 0; r < rounds; ++r) cells[i].mass += i + 1;
    std::atomic_signal_fence(std::memory_order_release);
    cells[i].done = true;
  }
}

int collect(Cell* cells) {
  int mass = 0;
  for (int i = 0; i < kCells; ++i) {
    while (!cells[i].done) sched_yield();
    std::atomic_signal_fence(std::memory_order_acquire);
    mass += cells[i].mass;
  }
  return mass;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 3);
  Cell cells[kCells];
  int mass = 0;
  example::in_parallel([&] { compute(cells, rounds); }, [&] { mass = collect(cells); });

  const int expected = rounds * kCells * (kCells + 1) / 2;
  if (mass != expected) example::fail("collected a mass of %d, computed %d", mass, expected);
}
