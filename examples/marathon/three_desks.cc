// Three desks, three locks, three threads: each desk takes a number above its right neighbour's, so
// that the three are never all equal. Marathon figures 2 and 3. The story is in three_desks.md.
#include "../example.h"

#include <mutex>

namespace {

class Desks {
 public:
  // A desk above its right neighbour has precedence over it. All equal would be a deadlock.
  void take_number(int desk) {
    const int neighbour = read((desk + 1) % 3);
    write(desk, neighbour + 1);
  }

  bool all_equal() const { return number_[0] == number_[1] && number_[1] == number_[2]; }
  int number(int desk) const { return number_[desk]; }

 private:
  int read(int desk) {
    const std::lock_guard guard(lock_[desk]);
    return number_[desk];  // heddle: bug
  }

  void write(int desk, int number) {
    const std::lock_guard guard(lock_[desk]);
    number_[desk] = number;  // heddle: bug
  }

  std::mutex lock_[3];
  int number_[3] = {0, 0, 0};
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 4);
  for (int round = 0; round < rounds; ++round) {
    Desks desks;
    example::in_parallel([&] { desks.take_number(0); }, [&] { desks.take_number(1); },
                         [&] { desks.take_number(2); });
    if (desks.all_equal()) {
      example::fail("all three desks drew the number %d: nobody has precedence", desks.number(0));
    }
  }
}
