// Small functions whose dependences functions_test.cc states, written down from this text. They are
// compiled with heddle-c++ and recorded at the flow level. Every function is called once, by main.
#include <cstring>

#define KEEP extern "C" __attribute__((noinline))

// What they read and write. Not static, so that the compiler knows nothing about their values.
int a = 1, b = 2, c = 0, n = 3;
int out, out2, sink;
int arr[8] = {1, 2, 3, 4, 5, 6, 7, 8};
int one = 1;
int index_ = 2;
int* p = &out;
int* q = &b;
int counter;
char text[16] = "hello";
char buf[16];
int from[4] = {1, 2, 3, 4}, to[4];

struct Node {
  int value;
  Node* next;
};
Node last_node = {7, nullptr};
Node first_node = {6, &last_node};
Node* list = &first_node;

int add(int x, int y) {
  return x + y;
}
int (*op)(int, int) = add;

KEEP void copy() {
  out = a;
}
KEEP void sum() {
  out = a + b;
}
KEEP void constant() {
  out = 1;
}
KEEP void product_of_three() {
  out = a * b + n;
}
KEEP void if_then() {
  if (a != 0) out = 5;
}
KEEP void if_value() {
  if (a != 0) out = b;
}
KEEP void if_else() {
  if (c != 0) {
    out = a;
  } else {
    out = b;
  }
}
KEEP void after_if() {
  if (a != 0) out = 5;
  out2 = 6;
}
KEEP void nested() {
  if (a != 0) {
    if (b != 0) out = 5;
    out2 = 6;
  }
}
KEEP void both() {
  if (a != 0 && b != 0) out = 5;
}
KEEP void either() {
  if (c != 0 || b != 0) out = 5;
}
KEEP void chosen() {
  int x = 3;
  if (a != 0) {
    sink = 1;
    x = 4;
  }
  out = x;
}
KEEP void total() {
  int s = 0;
  for (int i = 0; i < 4; ++i) s += arr[i];
  out = s;
}
KEEP void fill() {
  for (int i = 0; i < n; ++i) to[i] = a;
}
KEEP void count_down() {
  int left = n;
  while (left > 0) {
    --left;
    sink = left;
  }
  out = 1;
}
KEEP void do_while() {
  int i = 0;
  do {
    sink = arr[i];
    ++i;
  } while (arr[i] < n);
}
KEEP void search() {
  int i = 0;
  for (; i < 8; ++i) {
    if (arr[i] == n) break;
  }
  out = i;
}
KEEP void through_pointer() {
  *p = a;
}
KEEP void from_pointer() {
  out = *q;
}
KEEP void at_index() {
  out = arr[index_];
}
KEEP void to_index() {
  arr[index_] = a;
}
KEEP void list_walk() {
  out = list->next->value;
}

KEEP int twice(int x) {
  return 2 * x;
}
KEEP void call_result() {
  out = twice(a);
}
KEEP void put(int x) {
  sink = x;
}
KEEP void call_argument() {
  put(b);
}
KEEP void call_under_if() {
  if (a != 0) put(b);
}
KEEP int sign(int x) {
  if (x < 0) {
    sink = 1;
    return -1;
  }
  sink = 2;
  return 1;
}
KEEP void chosen_result() {
  out = sign(a);
}
KEEP int down(int x) {
  if (x == 0) return b;
  sink = x;
  return down(x - 1);
}
KEEP void recursion() {
  out = down(one);
}
KEEP void function_pointer() {
  out = op(a, b);
}
KEEP void copy_range() {
  std::memcpy(to, from, sizeof to);
}
KEEP void library_call() {
  std::strcpy(buf, text);
}
KEEP void fetch_add() {
  __atomic_fetch_add(&counter, a, __ATOMIC_SEQ_CST);
}
KEEP void exchange() {
  out = __atomic_exchange_n(&counter, a, __ATOMIC_SEQ_CST);
}
KEEP void choice_of_three() {
  switch (n) {
    case 1:
      out = a;
      break;
    case 3:
      out = b;
      break;
    default:
      sink = c;
  }
}
KEEP void read_back() {
  out = a;
  __asm__ volatile("" ::: "memory");
  out2 = out;
}
KEEP void thrower(int x) {
  if (x != 0) throw x;
  sink = 1;
}
KEEP void catches() {
  try {
    thrower(a);
    out = 1;
  } catch (int) {
    out2 = b;
  }
}
KEEP void use(int* array) {
  array[1] = a;
}
KEEP void local_array() {
  int array[4] = {};
  use(array);
  out = array[1];
}

// A variable has a name in the trace when its address is in the code somewhere.
KEEP void name_all() {
  sink = arr[0] + last_node.value + text[0] + buf[0];
}

int main() {
  name_all();
  copy();
  sum();
  constant();
  product_of_three();
  if_then();
  if_value();
  if_else();
  after_if();
  nested();
  both();
  either();
  chosen();
  total();
  fill();
  count_down();
  do_while();
  search();
  through_pointer();
  from_pointer();
  at_index();
  to_index();
  list_walk();
  call_result();
  call_argument();
  call_under_if();
  chosen_result();
  recursion();
  function_pointer();
  copy_range();
  library_call();
  fetch_add();
  exchange();
  choice_of_three();
  read_back();
  catches();
  local_array();
}
