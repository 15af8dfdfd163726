// The annotations that programs carry for ThreadSanitizer and its ancestors: order and locks that
// no interceptor sees (home-made locks, lock-free queues, libraries that are not instrumented).
// They become events of the trace like any other synchronisation; detectors need not know where
// they come from.
//
// Order:  __tsan_release / __tsan_acquire, AnnotateHappensBefore / AnnotateHappensAfter.
// Locks:  __tsan_mutex_post_lock / __tsan_mutex_pre_unlock, AnnotateRWLockAcquired / Released. The
//         event stands where the lock is held: after locking, before unlocking.
//
// Races:  AnnotateBenignRace, AnnotateIgnoreReads / WritesBegin / End, AnnotateEnableRaceDetection
//         become marks, for the detectors of races (detect/race/annotations.h).
//
// The rest of both interfaces exists so that annotated programs link and run, and does nothing:
// creation and destruction of locks, regions in which synchronisation is ignored.
#include "runtime/intercept.h"

#include <stdarg.h>

namespace heddle::rt {
namespace {

// As in sanitizer/tsan_interface.h.
enum MutexFlag : unsigned {
  kReadLock = 1 << 3,
  kTryLockFailed = 1 << 5,
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
RT_EXPORT void __tsan_mutex_pre_lock(void*, unsigned) {}

RT_EXPORT void __tsan_mutex_post_lock(void* lock, unsigned flags, int) {
  const OpOutcome outcome = flags & kTryLockFailed ? OpOutcome::kFailed : OpOutcome::kOk;
  note_lock(EventKind::kAcquire, lock, flags & kReadLock, outcome, RT_CALLER);
}

// The result is how often a recursive lock was held: it is let go of at once.
RT_EXPORT int __tsan_mutex_pre_unlock(void* lock, unsigned flags) {
  note_lock(EventKind::kRelease, lock, flags & kReadLock, OpOutcome::kOk, RT_CALLER);
  return 1;
}

RT_EXPORT void __tsan_mutex_post_unlock(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_pre_signal(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_post_signal(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_pre_divert(void*, unsigned) {}
RT_EXPORT void __tsan_mutex_post_divert(void*, unsigned) {}

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
RT_EXPORT void AnnotateEnableRaceDetection(const char*, int, int enable) {
  mark("heddle:race-detection %d", enable != 0 ? 1 : 0);
}

// ---- other --------------------------------------------------------------------------------------

RT_EXPORT void AnnotateThreadName(const char*, int, const char* name) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_thread_name(t_self->id, name);
}

RT_EXPORT void AnnotateIgnoreSyncBegin(const char*, int) {}
RT_EXPORT void AnnotateIgnoreSyncEnd(const char*, int) {}
RT_EXPORT void AnnotateNewMemory(const char*, int, const volatile void* address, size_t size) {
  if (!sched_active()) return;
  sched_need_baton();
  rec_event(EventKind::kAlloc, LockMode::kExclusive, OpOutcome::kOk, 0,
            reinterpret_cast<uint64_t>(address), size, RT_CALLER);
}
