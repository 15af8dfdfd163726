#!/bin/sh
# check_counts.sh HEDDLE-C++
#
# One seed gives one schedule, to the last point and the hash of all their kinds, whatever is recorded and
# whichever way the points take: the short ones of point_entry.cc, sched_point.h and sched_points.cc, or,
# where there are accesses to stop at (none that is ever reached), the long one.
set -u
compiler=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
cat >counts.cc <<'PROGRAM'
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
std::atomic<int> cells[64];
std::atomic<int> next{0};
std::mutex lock;
std::condition_variable turn;
std::once_flag once;
int whose = 0;
int initialised = 0;
int plain[64];

void work(int id) {
  std::vector<int> own(100, id);  // memory that is no point under points=shared
  for (int i = 0; i < 2000; ++i) {
    own[i % 100] += plain[i % 64];
    plain[(i + id) % 64] = own[(i * 7) % 100];
    for (int spin = 0; spin < (i == 1000 ? 9000 : i % 30); ++spin) ++own[0];
  }
  std::call_once(once, [] {
    for (std::atomic<int>& cell : cells) cell.store(1, std::memory_order_relaxed);
    ++initialised;
  });
  for (int i = 0; i < 3000; ++i) {
    std::atomic<int>& cell = cells[next.fetch_add(7) % 64];  // another cell each time …
    cell.fetch_add(1);
    for (int spin = 0; spin < i % 5; ++spin) cell.fetch_add(1);  // … and then the same again
    const std::lock_guard guard(lock);
    ++whose;
  }
  std::unique_lock guard(lock);
  while (whose % 3 != id % 3 && whose < 9100) {
    ++whose;
    turn.notify_all();
    turn.wait_for(guard, std::chrono::milliseconds(1));
  }
}

int main() {
  std::vector<std::thread> threads;
  for (int id = 0; id < 3; ++id) threads.emplace_back(work, id);
  for (std::thread& thread : threads) thread.join();
  return initialised == 1 ? 0 : 1;
}
PROGRAM
"$compiler" -std=c++20 -O2 counts.cc -o counts -pthread || exit 1

# run NAME OPTIONS: the schedule of a run, as NAME
run() {
  HEDDLE_OPTIONS=$schedule:schedule_out=$1:$2 timeout 300 ./counts ||
    { echo "FAILED: $schedule:$2: status $?"; exit 1; }
}
for schedule in schedule=fifo schedule=random:seed=5:switch_every=40 schedule=random:seed=6:switch_every=3 \
  schedule=random:seed=7:points=shared schedule=random:seed=8:points=all:switch_every=40; do
  run short level=off
  grep -q '^end [0-9]* points hash' short || { echo "FAILED: $schedule: no end"; exit 1; }
  run long level=off:stop_access=9.1.atomic:stop_sites=/dev/null
  run accesses mode=memory:level=accesses
  run flow mode=memory:level=flow
  for other in long accesses flow; do
    cmp -s short $other || { echo "FAILED: $schedule: $other differs"; diff short $other | head -20; exit 1; }
  done
done
echo passed
