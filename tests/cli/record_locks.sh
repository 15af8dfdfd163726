# A lock is called what the program calls it, and taken where the program takes it, at every -O.
cat >locks.cc <<'C'
#include <mutex>
#include <pthread.h>
namespace {
class Account {
 public:
  void add(int amount) {
    const std::lock_guard guard(lock_);
    balance_ += amount;
  }

 private:
  std::mutex lock_;
  int balance_ = 0;
};
struct Queue {
  int length;
  pthread_mutex_t mutex;
};
Queue waiting = {0, PTHREAD_MUTEX_INITIALIZER};
}  // namespace
int main() {
  Account mine, yours;
  mine.add(1);
  yours.add(2);
  pthread_mutex_lock(&waiting.mutex);
  ++waiting.length;
  pthread_mutex_unlock(&waiting.mutex);
}
C
for level in -O0 -O1 -O2; do
  expect 0 "$build/bin/heddle-c++" -std=c++20 $level -pthread locks.cc -o locks
  expect 0 "$heddle" record -q -o locks.heddle -- ./locks
  expect 0 "$heddle" show locks.heddle
  grep ' acq ' "$out" | grep -qE ' Account.lock_ .*locks.cc:7:' || fail "$level: the first lock"
  grep ' acq ' "$out" | grep -qE ' Account.lock_#2 .*locks.cc:7:' || fail "$level: the second lock"
  grep ' acq ' "$out" | grep -qE ' waiting.mutex .*locks.cc:25:' || fail "$level: the queue's lock"
  grep ' rel ' "$out" | grep -qE ' waiting.mutex .*locks.cc:27:' || fail "$level: the release"
done
