// A transfer between two fields of an account, under one lock, that counts its steps in a global
// counter under another. Marathon figure 1. Correct, though not serializable as a whole: see
// account.md.
#include "../example.h"

#include <mutex>

namespace {

class Global {
 public:
  void inc() {
    const std::lock_guard guard(lock_);
    op_counter_ = op_counter_ + 1;
  }
  int op_counter() const { return op_counter_; }

 private:
  std::mutex lock_;
  int op_counter_ = 0;
};

class Account {
 public:
  explicit Account(Global* global) : global_(global) {}

  void transfer(int amount) {
    const std::lock_guard guard(lock_);
    checking_ = checking_ + amount;
    global_->inc();
    savings_ = savings_ - amount;
    global_->inc();
  }

  int total() {
    const std::lock_guard guard(lock_);
    return checking_ + savings_;
  }

 private:
  std::mutex lock_;
  Global* global_;
  int checking_ = 0;
  int savings_ = 100;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 2);
  Global global;
  Account account(&global);
  int wrong_totals = 0;
  example::in_parallel(
      [&] {
        for (int i = 0; i < rounds; ++i) account.transfer(1);
      },
      [&] {
        for (int i = 0; i < rounds; ++i) {
          global.inc();
          if (account.total() != 100) ++wrong_totals;
        }
      });

  if (wrong_totals > 0) example::fail("a transfer was seen half done, %d times", wrong_totals);
  if (global.op_counter() != 3 * rounds) {
    example::fail("%d steps taken, %d counted", 3 * rounds, global.op_counter());
  }
}
