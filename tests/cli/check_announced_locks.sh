# __tsan_mutex_*: read locks, try-locks that fail, recursion, and the inside of the lock.
cat >locks.cc <<'C'
#include <atomic>
#include <cstdlib>
#include <thread>
#include <sched.h>
extern "C" {
void __tsan_mutex_create(void*, unsigned);
void __tsan_mutex_destroy(void*, unsigned);
void __tsan_mutex_pre_lock(void*, unsigned);
void __tsan_mutex_post_lock(void*, unsigned, int);
int __tsan_mutex_pre_unlock(void*, unsigned);
void __tsan_mutex_post_unlock(void*, unsigned);
void __tsan_mutex_pre_divert(void*, unsigned);
void __tsan_mutex_post_divert(void*, unsigned);
void AnnotateRWLockAcquired(const char*, int, const volatile void*, long);
void AnnotateRWLockReleased(const char*, int, const volatile void*, long);
}
enum Flag : unsigned { kRead = 8, kTry = 16, kTryFailed = 32, kRecursiveLock = 64,
                       kRecursiveUnlock = 128 };
int data;
struct Lock {  // relaxed: nothing but the announcements orders
  std::atomic<int> state{0};  // -1 written, n read
  int owner = 0;              // not atomic
  bool try_lock(int value) {
    int expected = 0;
    if (state.compare_exchange_strong(expected, value, std::memory_order_relaxed)) return true;
    return value > 0 && expected > 0 &&
           state.compare_exchange_strong(expected, expected + 1, std::memory_order_relaxed);
  }
  void lock(unsigned flags = 0, int recursion = 0) {
    __tsan_mutex_pre_lock(this, flags);
    owner = 1;
    while (!try_lock(flags & kRead ? 1 : -1)) sched_yield();
    __tsan_mutex_post_lock(this, flags, recursion);
  }
  int unlock(unsigned flags = 0) {
    const int times = __tsan_mutex_pre_unlock(this, flags);
    owner = 0;
    if (flags & kRead) state.fetch_sub(1, std::memory_order_relaxed);
    else state.store(0, std::memory_order_relaxed);
    __tsan_mutex_post_unlock(this, flags);
    return times;
  }
} lock;
void again() {  // a level deeper: the lock is held
  __tsan_mutex_pre_lock(&lock, 0);
  __tsan_mutex_post_lock(&lock, 0, 0);
}
void increment(char how) {
  for (int i = 0; i < 3; ++i) {
    switch (how) {
      case 'w': lock.lock(); ++data; lock.unlock(); break;
      case 'r': lock.lock(kRead); ++data; lock.unlock(kRead); break;  // a writer by mistake
      case 'l': lock.lock(kRead); if (data < 0) abort(); lock.unlock(kRead); break;
      case 't': {
        __tsan_mutex_pre_lock(&lock, kTry);
        const bool taken = lock.try_lock(-1);
        __tsan_mutex_post_lock(&lock, taken ? kTry : kTry | kTryFailed, 0);
        if (taken) ++data, lock.unlock();
        break;
      }
      case 'f':
        __tsan_mutex_pre_lock(&lock, kTry);
        __tsan_mutex_post_lock(&lock, kTry | kTryFailed, 0);
        ++data;
        break;
      case 'n': {  // both levels are given up together and taken back together
        lock.lock();
        again();
        ++data;
        if (lock.unlock(kRecursiveUnlock) != 2) abort();
        lock.lock(kRecursiveLock, 2);
        __tsan_mutex_pre_unlock(&lock, 0), __tsan_mutex_post_unlock(&lock, 0);
        ++data;  // one level is left
        lock.unlock();
        break;
      }
      case 'u':
        lock.lock();
        again();
        ++data;
        lock.unlock(kRecursiveUnlock);
        ++data;  // none is left
        break;
      case 'd':
        __tsan_mutex_pre_lock(&lock, 0);
        __tsan_mutex_pre_divert(&lock, 0);
        ++data;  // outside of the lock again
        __tsan_mutex_post_divert(&lock, 0);
        while (!lock.try_lock(-1)) sched_yield();
        __tsan_mutex_post_lock(&lock, 0, 0);
        lock.unlock();
        break;
      case 'R':
        while (!lock.try_lock(1)) sched_yield();
        AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 0);
        ++data;
        AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 0);
        lock.state.fetch_sub(1, std::memory_order_relaxed);
        break;
    }
  }
}
int main(int, char** argv) {
  __tsan_mutex_create(&lock, 0);
  std::thread one(increment, argv[1][0]), two(increment, argv[1][1]);
  one.join();
  two.join();
  __tsan_mutex_destroy(&lock, 0);
}
C
[ -x "$build/bin/heddle-c++" ] || exit 0
expect 0 "$build/bin/heddle-c++" -std=c++20 -O1 -g -pthread locks.cc -o locks
# verdict STATUS WAYS: what the two threads do, judged by race and lockset
verdict() {
  expect 0 "$heddle" record -q --level accesses --schedule random --seed 5 -o run.heddle -- \
    ./locks "$2"
  for detector in race lockset; do
    expect "$1" "$heddle" check run.heddle --detect $detector
    if [ "$1" = 1 ]; then
      says '`data`'
      if grep -q '^data race.*\(owner\|_M_i\)' "$out"; then fail "the lock's inside is looked at"; fi
    fi
  done
}
verdict 0 ww
verdict 0 wl  # a read lock and a write lock exclude each other
verdict 1 rr  # two read locks do not
verdict 1 RR
verdict 0 tt
verdict 1 ff  # a try-lock that failed protects nothing
verdict 0 wn
verdict 0 nn
verdict 1 uu
verdict 1 dd  # a call out of the inside
