// correlated-2014, test 21: dequeue_and_fill (the paper's figure 16) without a lock. The values
// filled in are independent, so nothing ties the region together but the address. The paper gives
// no verdict.
#include "../example.h"

namespace {

struct Obj {
  int a = 0;
  int b = 0;
  Obj* next = nullptr;
};

Obj objects[2];
Obj* list_head = nullptr;

Obj* dequeue_and_fill(int a, int b) {
  Obj* head = list_head;   // heddle: P
  head->a = a;             // heddle: bug
  head->b = b;             // heddle: bug
  list_head = head->next;  // heddle: R I
  return head;
}

}  // namespace

int main() {
  objects[0].next = &objects[1];
  list_head = &objects[0];
  Obj* first = nullptr;
  Obj* second = nullptr;
  example::in_parallel([&] { first = dequeue_and_fill(1, 10); },
                       [&] { second = dequeue_and_fill(2, 20); });
  if (first == second) {
    example::fail("both clients hold one object, filled with %d, %d", first->a, first->b);
  }
}
