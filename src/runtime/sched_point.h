// What nearly every scheduling point comes to: nobody is asked, it is counted.
//
// Whether somebody must be asked depends on a dozen things (who holds the baton, whether the run is
// under way, cancellation, one-time initialisers …), which change rarely. So the holder that has
// looked at all of them leaves its name in g_sched.quick, whatever changes one of them takes it
// away, and the next point looks again. What is left to look at is next_action, and whether the
// point is the last one again (a spin).
//
// Inline, and without a call, so that it needs few registers and the processor can look past it: a
// program that reads atomics all over memory depends on overlapping its cache misses.
#pragma once

#include "runtime/record.h"
#include "runtime/sched_state.h"

namespace heddle::rt {

constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15ull;

inline uint64_t hash_mark(ThreadId thread, PointKind kind) {
  return uint64_t{thread} << 8 | static_cast<uint64_t>(kind);
}

inline void count_point(Thread* self, PointKind kind) {
  ++g_sched.points;
  ++self->steps;
  g_sched.hash = (g_sched.hash ^ hash_mark(self->id, kind)) * kHashFactor;
}

// Memory of one thread is no reason for a switch; but a loop that looks at the same place of it for
// ever waits for somebody.
constexpr uint32_t kPrivateSpinLimit = 20 * kSpinLimit;

// Where the holder is now. False, and nothing is noted: it has been there `limit` times in a row.
inline bool note_place(Thread* self, const volatile void* object, const void* pc, uint32_t limit) {
  if (object != self->spin_object || pc != self->spin_pc) {
    self->spin_object = object;
    self->spin_pc = pc;
    self->spin_count = 0;
    return true;
  }
  if (self->spin_count + 1 >= limit) return false;
  ++self->spin_count;
  return true;
}

// False, and nothing is done: ask at length. Not for plain accesses and for yields. point_entry.cc
// has a twin for atomic accesses.
inline bool quick_point_passes(PointKind kind, const volatile void* object, const void* pc) {
  Thread* self = t_self;
  if (self != g_sched.quick || inside() || g_sched.points + 1 >= g_sched.next_action) return false;
  if (object == self->spin_object && pc == self->spin_pc) return false;
  self->spin_object = object;
  self->spin_pc = pc;
  self->spin_count = 0;
  count_point(self, kind);
  return true;
}

}  // namespace heddle::rt
