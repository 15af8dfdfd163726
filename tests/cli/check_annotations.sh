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
void AnnotateIgnoreSyncBegin(const char*, int);
void AnnotateIgnoreSyncEnd(const char*, int);
}
enum { kNothing, kOrder, kHappens, kMutex, kRwLock, kBenign, kIgnore, kIgnoreReads, kIgnoreSync };
int mode;
int data;
std::atomic<int> ready;  // relaxed: the language sees no order
struct Spin {
  std::atomic<bool> held{false};
  void lock() {
    if (mode == kMutex) __tsan_mutex_pre_lock(this, 0);
    while (held.exchange(true, std::memory_order_relaxed)) sched_yield();
    if (mode == kMutex) __tsan_mutex_post_lock(this, 0, 0);
    if (mode == kIgnoreSync) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    if (mode == kRwLock || mode == kIgnoreSync) AnnotateRWLockAcquired(__FILE__, __LINE__, this, 1);
    if (mode == kIgnoreSync) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
  void unlock() {
    if (mode == kRwLock || mode == kIgnoreSync) AnnotateRWLockReleased(__FILE__, __LINE__, this, 1);
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
      if (mode == kIgnore || mode == kIgnoreReads) AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      if (mode == kIgnore) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
      ++data;
      if (mode == kIgnore) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      if (mode == kIgnore || mode == kIgnoreReads) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
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
  record "$3" "$4"
  expect "$1" "$heddle" check run.heddle --detect "$2"
}
record() {
  expect 0 "$heddle" record -q --level accesses --schedule random --seed 3 -o run.heddle -- \
    ./annotated "$1" "$2"
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
# A lock whose order is ignored is held nevertheless.
verdict 1 race 1 8
verdict 0 lockset 1 8

# frontier lists the hand-over of the announced lock, not its inside, and none of what it is asked
# not to look at.
# list WAY MODE; marked STATUS MARK: with every pair marked so
list() {
  record "$1" "$2"
  rm -f app.marks
  expect 0 "$heddle" check run.heddle --detect frontier --marks app.marks
}
marked() {
  sed "s/^?/$2/" app.marks >marked.marks
  expect "$1" "$heddle" check run.heddle --detect frontier --marks marked.marks
}
list 0 1
marked 0 sync
marked 1 data
says '`data`'
list 1 3
grep -qP '^\?\t\d+\trelease.*\tacquire' app.marks || fail "the lock's hand-over is not listed"
grep -q _M_i app.marks && fail "the inside of the lock is listed"
marked 0 sync
marked 1 data
says '`data`'
for mode in 5 6; do
  list 1 $mode
  grep -q 'data$' app.marks && fail "what it is asked not to look at is listed"
  marked 1 data  # the lock, which nobody announced
  grep -q '`data`' "$out" && fail "what it is asked not to look at is a race"
done
list 1 7
marked 1 data
says '`data`'
expect 0 "$heddle" check run.heddle --detect race --fail-on none
grep '^data race' "$out" >race
expect 0 "$heddle" check run.heddle --detect frontier --mark-auto --fail-on none
grep '^data race' "$out" >frontier
same race frontier
