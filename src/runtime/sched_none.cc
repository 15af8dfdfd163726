// A scheduler for programs of one thread: weak, so that the real one (sched_*.cc) takes its place.
#include "runtime/sched.h"

#define RT_WEAK __attribute__((weak))

namespace heddle::rt {

RT_WEAK void sched_init() {
  rec_take(0);
}
RT_WEAK bool sched_active() {
  return false;
}
RT_WEAK void sched_end() {}
RT_WEAK Thread* sched_self() {
  return nullptr;
}
RT_WEAK bool sched_holds() {
  return true;
}
RT_WEAK void sched_point(PointKind, const volatile void*, const void*) {}
RT_WEAK bool sched_point_may_switch(PointKind, const volatile void*) {
  return false;
}
RT_WEAK void sched_tick() {}
RT_WEAK void sched_need_baton() {}
RT_WEAK void sched_leave_game() {}
RT_WEAK void sched_join_game() {}
RT_WEAK void sched_fork_prepare() {}
RT_WEAK void sched_fork_parent() {}
RT_WEAK void sched_fork_child() {}
RT_WEAK void sched_unpin() {}
RT_WEAK bool sched_in_scheduler() {
  return false;
}
RT_WEAK void sched_nudge() {}
RT_WEAK void sched_interrupt() {}

}  // namespace heddle::rt
