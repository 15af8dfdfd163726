// SVD figure 9: take the first object of a shared list and fill it, as one step, without a lock.
// The story is in dequeue_fill.md.
#include "../example.h"

#include <memory>

namespace {

struct Obj {
  int a = 0;
  int b = 0;
  Obj* next = nullptr;
};

Obj* list_head = nullptr;

Obj* dequeue_and_fill(int a, int b) {
  Obj* head = list_head;   // heddle: P
  head->a = a;             // heddle: bug
  head->b = b;             // heddle: bug
  list_head = head->next;  // heddle: R I
  return head;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 3);
  const auto objects = std::make_unique<Obj[]>(2 * rounds);
  for (int i = 0; i + 1 < 2 * rounds; ++i) objects[i].next = &objects[i + 1];
  list_head = &objects[0];

  const auto client = [&](int first) {
    for (int i = 0; i < rounds; ++i) dequeue_and_fill(first + i, -(first + i));
  };
  example::in_parallel([&] { client(1); }, [&] { client(1 + rounds); });

  int filled = 0;
  for (int i = 0; i < 2 * rounds; ++i) {
    if (objects[i].a != -objects[i].b) {
      example::fail("object %d is half one client's, half the other's: %d, %d", i, objects[i].a,
                    objects[i].b);
    }
    if (objects[i].a != 0) ++filled;
  }
  if (filled != 2 * rounds) {
    example::fail("%d objects taken from the list, %d filled", 2 * rounds, filled);
  }
}
