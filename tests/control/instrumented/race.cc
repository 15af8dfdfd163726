// Lost updates are right here: the seed alone decides how many there are.
#include "../programs/control.h"

static int counter;
static int* heap;

static void* worker(void* argument) {
  for (int i = 0; i < 50; ++i) {
    counter = counter + 1;
    heap[i % 8] += counter;
  }
  return argument;
}

int main() {
  heap = static_cast<int*>(calloc(8, sizeof(int)));
  run_threads(3, worker);
  CHECK(counter >= 2 && counter <= 150);
  free(heap);
  return done();
}
