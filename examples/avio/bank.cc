// A deposit: read the account, add, write it back. AVIO figure 3(a), the example of table 1,
// case 6. The story is in bank.md.
#include "../example.h"

#include <mutex>

namespace {

class Account {
 public:
  int balance() {
    const std::lock_guard guard(lock_);
    return balance_;  // heddle: P
  }

  void set_balance(int balance) {
    const std::lock_guard guard(lock_);
    balance_ = balance;  // heddle: R I
  }

 private:
  std::mutex lock_;
  int balance_ = 0;
};

void deposit(Account* account, int amount) {
  const int before = account->balance();
  account->set_balance(before + amount);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 2);
  Account account;
  const auto client = [&] {
    for (int i = 0; i < rounds; ++i) deposit(&account, 10);
  };
  example::in_parallel(client, client);

  if (account.balance() != 20 * rounds) {
    example::fail("deposited %d, the balance is %d", 20 * rounds, account.balance());
  }
}
