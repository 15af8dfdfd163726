// MySQL, table locking: the number of locks on a table is kept under a mutex and looked at without.
// SVD figure 1. Correct: the look can only see a number that is not zero. See tot_lock.md.
#include "../example.h"

#include <mutex>

namespace {

struct Share {
  std::mutex internal_lock;
  int tot_lock = 0;
  int w_locks = 0;
  std::mutex data_lock;
  int state_version = 0;  // read from the file by the first to lock the table
  int records = 0;
  int unlocked_writes = 0;
};

void lock_table(Share* info) {
  const std::lock_guard guard(info->internal_lock);
  if (info->tot_lock == 0) {
    info->state_version = info->state_version + 1;
  }
  info->w_locks = info->w_locks + 1;
  info->tot_lock = info->tot_lock + 1;
}

void unlock_table(Share* info) {
  const std::lock_guard guard(info->internal_lock);
  info->w_locks = info->w_locks - 1;
  info->tot_lock = info->tot_lock - 1;
}

// Only a temporary table may be written without a lock. The caller of a shared table holds one, so
// whatever the others do to the number meanwhile, it is at least one: the race is harmless.
void write_record(Share* info) {
  if (info->tot_lock == 0) {
    info->unlocked_writes = info->unlocked_writes + 1;
  }
  const std::lock_guard guard(info->data_lock);
  ++info->records;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 3);
  Share share;
  const auto client = [&] {
    for (int i = 0; i < rounds; ++i) {
      lock_table(&share);
      write_record(&share);
      unlock_table(&share);
    }
  };
  example::in_parallel(client, client);

  if (share.records != 2 * rounds || share.unlocked_writes != 0) {
    example::fail("%d of %d records written, %d of them without a lock", share.records, 2 * rounds,
                  share.unlocked_writes);
  }
  if (share.tot_lock != 0 || share.w_locks != 0) {
    example::fail("%d locks left, %d of them write locks", share.tot_lock, share.w_locks);
  }
}
