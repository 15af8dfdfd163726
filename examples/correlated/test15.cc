// correlated-2014, test 15: scaleVector, the paper's figure 2, with the lock let go in between.
// Every access is locked, and two scalings still mix. Helgrind+ is silent.
#include "../example.h"

#include <mutex>

namespace {

std::mutex m;
float x = 4;
float y = 8;

// Divides the vector by its larger part, so that the larger part becomes 1.
void scale_vector() {
  float a;
  float b;
  {
    const std::lock_guard guard(m);
    a = x;  // heddle: P
    b = y;  // heddle: P
  }
  const float max = a > b ? a : b;
  const std::lock_guard guard(m);
  x = x / max;  // heddle: R I
  y = y / max;  // heddle: R I
}

}  // namespace

int main() {
  example::in_parallel(scale_vector, scale_vector);
  if (x != 0.5f || y != 1) example::fail("scaled (4, 8) to (%g, %g)", x, y);
}
