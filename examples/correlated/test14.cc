// correlated-2014, test 14: scaleVector (the paper's figure 2) without locks. A race.
#include "../example.h"

namespace {

float x = 4;
float y = 8;

// Divides the vector by its larger part, so that the larger part becomes 1.
void scale_vector() {
  const float a = x;  // heddle: P I
  const float b = y;  // heddle: P I
  const float max = a > b ? a : b;
  x = x / max;  // heddle: P R I
  y = y / max;  // heddle: P R I
}

}  // namespace

int main() {
  example::in_parallel(scale_vector, scale_vector);
  if (x != 0.5f || y != 1) example::fail("scaled (4, 8) to (%g, %g)", x, y);
}
