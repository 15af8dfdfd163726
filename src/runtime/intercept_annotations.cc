// The annotations that programs carry for ThreadSanitizer and its ancestors: order and locks that
// no interceptor sees (home-made locks, lock-free queues, libraries that are not instrumented).
// They become events of the trace like any other synchronisation; detectors need not know where
// they come from.
//
// Order:  __tsan_release / __tsan_acquire, AnnotateHappensBefore / AnnotateHappensAfter.
// Locks:  __tsan_mutex_post_lock / __tsan_mutex_pre_unlock, AnnotateRWLockAcquired / Released. The
//         event stands where the lock is held: after locking, before unlocking. What the lock does
//         inside, from pre to post, is its own business: neither accesses nor order count.
//
// Races:  AnnotateBenignRace, AnnotateIgnoreReads / Writes / SyncBegin / End,
//         AnnotateEnableRaceDetection become marks, for the detectors of races
//         (detect/race/annotations.h).
//
// The rest of both interfaces exists so that annotated programs link and run, and does nothing,
// as in ThreadSanitizer.
#include "runtime/intercept.h"

#include <stdarg.h>

namespace heddle::rt {
namespace {

// As in sanitizer/tsan_interface.h.
enum MutexFlag : unsigned {
  kReadLock = 1 << 3,
  kTryLockFailed = 1 << 5,
  kRecursiveLock = 1 << 6,    // post_lock: taken as often as its last argument says
  kRecursiveUnlock = 1 << 7,  // pre_unlock: let go of as often as it is held
};

void announce(EventKind kind, const volatile void* object, const void* pc) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_sync(kind, object, 0, pc);
}

void note_lock(EventKind kind, const volatile void* lock, bool shared, OpOutcome outcome,
               const void* pc) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_lock(kind, lock, shared ? LockMode::kShared : LockMode::kExclusive, pc, outcome);
}

__attribute__((format(printf, 1, 2))) void mark(const char* format, ...) {
  if (!sched_active()) return;
  sched_need_baton();
  char text[96];
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_text_v(text, sizeof text, format, arguments);
  va_end(arguments);
  rec_text(TextKind::kMark, text, length);
}

// How often announced locks are held for writing, for those that are let go of all at once. Under
// the baton. Beyond its room a lock counts as held once.
struct Held {
  const void* lock;
  int times;
};
Held s_held[256];
int s_held_count;

void note_held(const void* lock, int times) {
  if (!sched_active()) return;
  for (int i = 0; i < s_held_count; ++i) {
    if (s_held[i].lock != lock) continue;
    s_held[i].times += times;
    if (s_held[i].times <= 0) s_held[i] = s_held[--s_held_count];
    return;
  }
  constexpr int kRoom = sizeof s_held / sizeof s_held[0];
  if (times > 0 && s_held_count < kRoom) s_held[s_held_count++] = {lock, times};
}

int times_held(const void* lock) {
  if (!sched_active()) return 1;
  for (int i = 0; i < s_held_count; ++i) {
    if (s_held[i].lock == lock) return s_held[i].times;
  }
  return 1;
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle;
using namespace heddle::rt;

// ---- order --------------------------------------------------------------------------------------

RT_EXPORT void __tsan_release(void* object) {
  announce(EventKind::kOrderRelease, object, RT_CALLER);
}

RT_EXPORT void __tsan_acquire(void* object) {
  announce(EventKind::kOrderAcquire, object, RT_CALLER);
}

RT_EXPORT void AnnotateHappensBefore(const char*, int, const volatile void* object) {
  announce(EventKind::kOrderRelease, object, RT_CALLER);
}

RT_EXPORT void AnnotateHappensAfter(const char*, int, const volatile void* object) {
  announce(EventKind::kOrderAcquire, object, RT_CALLER);
}

// ---- locks --------------------------------------------------------------------------------------

RT_EXPORT void __tsan_mutex_create(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_destroy(void*, unsigned) {}

RT_EXPORT void __tsan_mutex_pre_lock(void*, unsigned) {
  mark("heddle:ignore-all 1");
}

RT_EXPORT void __tsan_mutex_post_lock(void* lock, unsigned flags, int recursion) {
  mark("heddle:ignore-all 0");
  const bool shared = flags & kReadLock;
  if (flags & kTryLockFailed) {
    note_lock(EventKind::kAcquire, lock, shared, OpOutcome::kFailed, RT_CALLER);
    return;
  }
  const int times = flags & kRecursiveLock && recursion > 0 ? recursion : 1;
  for (int i = 0; i < times; ++i) {
    note_lock(EventKind::kAcquire, lock, shared, OpOutcome::kOk, RT_CALLER);
  }
  if (!shared) note_held(lock, times);
}

// The result is how often it was let go of: post_lock takes the number back.
RT_EXPORT int __tsan_mutex_pre_unlock(void* lock, unsigned flags) {
  const bool shared = flags & kReadLock;
  const int times = flags & kRecursiveUnlock && !shared ? times_held(lock) : 1;
  for (int i = 0; i < times; ++i) {
    note_lock(EventKind::kRelease, lock, shared, OpOutcome::kOk, RT_CALLER);
  }
  if (!shared) note_held(lock, -times);
  mark("heddle:ignore-all 1");
  return times;
}

RT_EXPORT void __tsan_mutex_post_unlock(void*, unsigned) {
  mark("heddle:ignore-all 0");
}
RT_EXPORT void __tsan_mutex_pre_signal(void*, unsigned) {
  mark("heddle:ignore-all 1");
}
RT_EXPORT void __tsan_mutex_post_signal(void*, unsigned) {
  mark("heddle:ignore-all 0");
}
// A call out of the lock's inside (to a logger, say) and back.
RT_EXPORT void __tsan_mutex_pre_divert(void*, unsigned) {
  mark("heddle:ignore-all 0");
}
RT_EXPORT void __tsan_mutex_post_divert(void*, unsigned) {
  mark("heddle:ignore-all 1");
}

RT_EXPORT void AnnotateRWLockCreate(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateRWLockCreateStatic(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateRWLockDestroy(const char*, int, const volatile void*) {}

RT_EXPORT void AnnotateRWLockAcquired(const char*, int, const volatile void* lock, long writes) {
  note_lock(EventKind::kAcquire, lock, writes == 0, OpOutcome::kOk, RT_CALLER);
}

RT_EXPORT void AnnotateRWLockReleased(const char*, int, const volatile void* lock, long writes) {
  note_lock(EventKind::kRelease, lock, writes == 0, OpOutcome::kOk, RT_CALLER);
}

// ---- races --------------------------------------------------------------------------------------

RT_EXPORT void AnnotateBenignRaceSized(const char*, int, const volatile void* address, size_t size,
                                       const char*) {
  mark("heddle:benign-race 0x%lx %lu", reinterpret_cast<unsigned long>(address), size);
}
RT_EXPORT void AnnotateBenignRace(const char* file, int line, const volatile void* address,
                                  const char* why) {
  AnnotateBenignRaceSized(file, line, address, sizeof(void*), why);
}
RT_EXPORT void AnnotateIgnoreReadsBegin(const char*, int) {
  mark("heddle:ignore-reads 1");
}
RT_EXPORT void AnnotateIgnoreReadsEnd(const char*, int) {
  mark("heddle:ignore-reads 0");
}
RT_EXPORT void AnnotateIgnoreWritesBegin(const char*, int) {
  mark("heddle:ignore-writes 1");
}
RT_EXPORT void AnnotateIgnoreWritesEnd(const char*, int) {
  mark("heddle:ignore-writes 0");
}
RT_EXPORT void AnnotateIgnoreSyncBegin(const char*, int) {
  mark("heddle:ignore-sync 1");
}
RT_EXPORT void AnnotateIgnoreSyncEnd(const char*, int) {
  mark("heddle:ignore-sync 0");
}
RT_EXPORT void AnnotateEnableRaceDetection(const char*, int, int enable) {
  mark("heddle:race-detection %d", enable != 0 ? 1 : 0);
}

// ---- other --------------------------------------------------------------------------------------

RT_EXPORT void AnnotateThreadName(const char*, int, const char* name) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_thread_name(t_self->id, name);
}

RT_EXPORT void AnnotateNewMemory(const char*, int, const volatile void* address, size_t size) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_event(EventKind::kAlloc, LockMode::kExclusive, OpOutcome::kOk, 0,
            reinterpret_cast<uint64_t>(address), size, RT_CALLER);
}

// ---- nothing to do ------------------------------------------------------------------------------

RT_EXPORT void AnnotateCondVarSignal(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateCondVarSignalAll(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateCondVarWait(const char*, int, const volatile void*, const volatile void*) {}
RT_EXPORT void AnnotateExpectRace(const char*, int, const volatile void*, const char*) {}
RT_EXPORT void AnnotateFlushExpectedRaces(const char*, int) {}
RT_EXPORT void AnnotateFlushState(const char*, int) {}
RT_EXPORT void AnnotateMutexIsNotPHB(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateMutexIsUsedAsCondVar(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotateNoOp(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotatePCQCreate(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotatePCQDestroy(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotatePCQGet(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotatePCQPut(const char*, int, const volatile void*) {}
RT_EXPORT void AnnotatePublishMemoryRange(const char*, int, const volatile void*, size_t) {}
RT_EXPORT void AnnotateUnpublishMemoryRange(const char*, int, const volatile void*, size_t) {}
RT_EXPORT void AnnotateTraceMemory(const char*, int, const volatile void*) {}
