# ThreadSanitizer's annotations order events and name locks that nothing else tells.
cat >annotated.cc <<'C'
#include <atomic>
#include <cstdlib>
#include <thread>
#include <sched.h>
extern "C" {
void __tsan_acquire(void*);
void __tsan_release(void*);
void __tsan_mutex_create(void*, unsigned);
void __tsan_mutex_destroy(void*, unsigned);
void __tsan_mutex_pre_lock(void*, unsigned);
void __tsan_mutex_post_lock(void*, unsigned, int);
int __tsan_mutex_pre_unlock(void*, unsigned);
void __tsan_mutex_post_unlock(void*, unsigned);
void AnnotateHappensBefore(const char*, int, const volatile void*);
void AnnotateHappensAfter(const char*, int, const volatile void*);
void AnnotateRWLockAcquired(const char*, int, const volatile void*, long);
void AnnotateRWLockReleased(const char*, int, const volatile void*, long);
void AnnotateBenignRaceSized(const char*, int, const volatile void*, unsigned long, const char*);
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
}
enum { kNothing, kOrder, kHappens, kMutex, kRwLock, kBenign, kIgnore, kIgnoreReads };
int mode;
int data;
std::atomic<int> ready;  // relaxed: the language sees no order
struct Spin {
  std::atomic<bool> held{false};
  void lock() {
    if (mode == kMutex) __tsan_mutex_pre_lock(this, 0);
    while (held.exchange(true, std::memory_order_relaxed)) sched_yield();
    if (mode == kMutex) __tsan_mutex_post_lock(this, 0, 0);
    if (mode == kRwLock) AnnotateRWLockAcquired(__FILE__, __LINE__, this, 1);
  }
  void unlock() {
    if (mode == kRwLock) AnnotateRWLockReleased(__FILE__, __LINE__, this, 1);
    if (mode == kMutex) __tsan_mutex_pre_unlock(this, 0);
    held.store(false, std::memory_order_relaxed);
    if (mode == kMutex) __tsan_mutex_post_unlock(this, 0);
  }
} spin;
void hand_over() {
  std::thread consumer([] {
    while (ready.load(std::memory_order_relaxed) == 0) sched_yield();
    if (mode == kOrder) __tsan_acquire(&ready);
    if (mode == kHappens) AnnotateHappensAfter(__FILE__, __LINE__, &ready);
    data += 1;
  });
  data = 1;
  if (mode == kOrder) __tsan_release(&ready);
  if (mode == kHappens) AnnotateHappensBefore(__FILE__, __LINE__, &ready);
  ready.store(1, std::memory_order_relaxed);
  consumer.join();
}
void share() {
  const auto work = [] {
    for (int i = 0; i < 3; ++i) {
      spin.lock();
      if (mode >= kIgnore) AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      if (mode == kIgnore) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
      ++data;
      if (mode == kIgnore) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      if (mode >= kIgnore) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
      spin.unlock();
    }
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
}
int main(int argc, char** argv) {
  mode = argc > 2 ? std::atoi(argv[2]) : 0;
  if (mode == kBenign) AnnotateBenignRaceSized(__FILE__, __LINE__, &data, sizeof data, "a test");
  if (std::atoi(argv[1]) == 0) hand_over(); else share();
}
C
[ -x "$build/bin/heddle-c++" ] || exit 0
expect 0 "$build/bin/heddle-c++" -std=c++20 -O1 -g -pthread annotated.cc -o annotated
# verdict STATUS DETECTOR WAY MODE
verdict() {
  expect 0 "$heddle" record -q --level accesses --schedule random --seed 3 -o run.heddle -- \
    ./annotated "$3" "$4"
  expect "$1" "$heddle" check run.heddle --detect "$2"
}
verdict 1 race 0 0
says '`data`'
verdict 0 race 0 1
verdict 0 race 0 2
verdict 1 race 1 0
verdict 0 race 1 3
verdict 0 race 1 4
verdict 1 lockset 1 0
verdict 0 lockset 1 3
verdict 0 lockset 1 4
# Races that the program knows of, and accesses that it asks not to look at.
for detector in race lockset; do
  verdict 0 $detector 1 5
  verdict 0 $detector 1 6
  verdict 1 $detector 1 7  # the writes are still looked at
done
