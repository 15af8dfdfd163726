// A cache under a reader-writer lock. A miss lets go of the shared lock and looks again under the
// exclusive one, because the answer may have come in between. Correct under every schedule.
#include "../example.h"

#include <mutex>
#include <shared_mutex>

namespace {

constexpr int kKeys = 4;

class Cache {
 public:
  int square(int key) {
    {
      const std::shared_lock guard(lock_);
      if (entries_[key].known) return entries_[key].value;
    }
    const std::unique_lock guard(lock_);
    if (!entries_[key].known) {
      entries_[key].value = key * key;
      entries_[key].known = true;
      ++computed_;
    }
    return entries_[key].value;
  }

  int computed() const { return computed_; }

 private:
  struct Entry {
    bool known = false;
    int value = 0;
  };

  std::shared_mutex lock_;
  Entry entries_[kKeys];
  int computed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 2);
  Cache cache;
  int wrong[3] = {0, 0, 0};
  const auto client = [&](int first, int* mistakes) {
    for (int i = 0; i < rounds * kKeys; ++i) {
      const int key = (first + i) % kKeys;
      if (cache.square(key) != key * key) ++*mistakes;
    }
  };
  example::in_parallel([&] { client(0, &wrong[0]); }, [&] { client(1, &wrong[1]); },
                       [&] { client(2, &wrong[2]); });

  if (wrong[0] + wrong[1] + wrong[2] > 0) example::fail("the cache gave wrong answers");
  if (cache.computed() != kKeys) {
    example::fail("%d keys, %d computations", kKeys, cache.computed());
  }
}
