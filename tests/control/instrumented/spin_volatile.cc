// Threads that wait for a volatile flag without calling anything, in a chain.
#include "../programs/control.h"

static volatile int turn;

static void* worker(void* argument) {
  const int me = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  while (turn != me) {
  }
  turn = me + 1;
  return argument;
}

int main() {
  run_threads(5, worker);
  CHECK(turn == 5);
  return done();
}
