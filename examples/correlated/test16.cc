// correlated-2014, test 16: normalize (the paper's figure 13), one lock from first read to last
// write. No race.
#include "../example.h"

#include <cmath>
#include <mutex>

namespace {

std::mutex m;
float a = 3;
float b = 4;

void normalize() {
  const std::lock_guard guard(m);
  const float len = std::sqrt(a * a + b * b);
  a = a / len;
  b = b / len;
}

}  // namespace

int main() {
  example::in_parallel(normalize, normalize);
  if (std::abs(std::sqrt(a * a + b * b) - 1) > 1e-5f) {
    example::fail("normalised (3, 4) to (%g, %g)", a, b);
  }
}
