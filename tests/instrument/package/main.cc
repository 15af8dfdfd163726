#include <thread>

int next_number();
extern "C" int add_item(int n);
extern "C" int not_instrumented(void);

int main() {
  int sum = 0;
  std::thread other([&] { sum = add_item(next_number()); });
  other.join();
  return sum + not_instrumented() == 2 ? 0 : 1;
}
