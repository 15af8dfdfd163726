// A one-dimensional stencil in phases: everyone reads what everyone wrote before the barrier. No
// lock protects the cells, and none is needed. Correct under every schedule.
#include "../example.h"

#include <pthread.h>

namespace {

constexpr int kThreads = 3;
constexpr int kCellsEach = 2;
constexpr int kCells = kThreads * kCellsEach;

struct Ring {
  explicit Ring(int sweep_count) : sweeps(sweep_count) {
    pthread_barrier_init(&barrier, nullptr, kThreads);
    for (int i = 0; i < kCells; ++i) cells[0][i] = static_cast<unsigned>(i + 1);
  }
  ~Ring() { pthread_barrier_destroy(&barrier); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void work(int id) {
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const unsigned* from = cells[sweep % 2];
      unsigned* to = cells[(sweep + 1) % 2];
      for (int i = id * kCellsEach; i < (id + 1) * kCellsEach; ++i) {
        to[i] = from[(i + kCells - 1) % kCells] + from[(i + 1) % kCells];
      }
      pthread_barrier_wait(&barrier);
    }
  }

  int sweeps;
  pthread_barrier_t barrier;
  unsigned cells[2][kCells] = {};
};

}  // namespace

int main(int argc, char** argv) {
  Ring ring(example::rounds(argc, argv, 3));
  example::in_parallel([&] { ring.work(0); }, [&] { ring.work(1); }, [&] { ring.work(2); });

  // A sweep doubles the sum of the ring (modulo 2^32, as does `expected`).
  unsigned expected = kCells * (kCells + 1) / 2;
  for (int sweep = 0; sweep < ring.sweeps; ++sweep) expected *= 2;
  unsigned sum = 0;
  for (const unsigned cell : ring.cells[ring.sweeps % 2]) sum += cell;
  if (sum != expected) example::fail("the ring sums to %u instead of %u", sum, expected);
}
