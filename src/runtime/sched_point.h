// What nearly every scheduling point at an atomic access comes to: nobody is asked, it is counted.
//
// Inline, and without a call, so that it needs few registers and the processor can look past it: a
// program that reads atomics all over memory depends on overlapping its cache misses.
#pragma once

#include "runtime/record.h"
#include "runtime/sched_state.h"

namespace heddle::rt {

inline void count_point(Thread* self, PointKind kind) {
  ++g_sched.points;
  ++self->steps;
  g_sched.hash = (g_sched.hash ^ (uint64_t{self->id} << 8 | static_cast<uint64_t>(kind))) *
                 0x9e3779b97f4a7c15ull;
}

inline bool atomic_point_passes(const volatile void* object, const void* pc) {
  Thread* self = t_self;
  if (self == nullptr || inside() || !g_sched.on ||
      __atomic_load_n(&g_sched.holder, __ATOMIC_RELAXED) != self ||
      g_sched.points + 1 >= g_sched.next_action || self->async_cancel || self->once_depth != 0) {
    return false;
  }
  if (object == self->spin_object && pc == self->spin_pc) return false;
  self->spin_object = object;
  self->spin_pc = pc;
  self->spin_count = 0;
  count_point(self, PointKind::kAtomic);
  return true;
}

}  // namespace heddle::rt
