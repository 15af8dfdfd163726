// What is in vector registers while a thread stands at an access is there after it, whether another
// ran in between or not.
#include "../programs/control.h"

static double factors[4];
static double* sums;

// Twelve values that live across two accesses in every round, some of them to memory of this thread
// alone, the others not.
static void* worker(void* argument) {
  double own[8];
  for (double& one : own) one = 1;
  double a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  float i = 9, j = 10, k = 11, l = 12;
  for (int round = 0; round < 400; ++round) {
    const double one = factors[round % 4] * own[round % 8];
    a += one, b += one, c += one, d += one, e += one, f += one, g += one, h += one;
    const auto same = static_cast<float>(own[(round + 3) % 8]);
    i += same, j += same, k += same, l += same;
    own[round % 8] = one;
  }
  sums[reinterpret_cast<intptr_t>(argument)] =
      a + b + c + d + e + f + g + h + static_cast<double>(i + j + k + l);
  return argument;
}

int main() {
  for (double& one : factors) one = 1;
  sums = static_cast<double*>(calloc(3, sizeof(double)));
  run_threads(3, worker);
  for (int i = 0; i < 3; ++i) CHECK(sums[i] == 78 + 12 * 400);
  free(sums);
  return done();
}
