// A deposit: read the account, add, write it back. AVIO figure 3(a), the example of table 1,
// case 6. Corrected: the account does the addition, under its lock.
#include "../example.h"

#include <mutex>

namespace {

class Account {
 public:
  int balance() {
    const std::lock_guard guard(lock_);
    return balance_;
  }

  void deposit(int amount) {
    const std::lock_guard guard(lock_);
    balance_ = balance_ + amount;
  }

 private:
  std::mutex lock_;
  int balance_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 2);
  Account account;
  const auto client = [&] {
    for (int i = 0; i < rounds; ++i) account.deposit(10);
  };
  example::in_parallel(client, client);

  if (account.balance() != 20 * rounds) {
    example::fail("deposited %d, the balance is %d", 20 * rounds, account.balance());
  }
}
