#include "abi/status.h"
#include "runtime/clock.h"
#include "runtime/sched_point.h"
#include "runtime/sched_state.h"
#include "runtime/strategy.h"
#include "runtime/stream.h"

namespace heddle::rt {

Sched g_sched;
constinit thread_local Thread* t_self __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

inline Thread* load_holder() {
  return __atomic_load_n(&g_sched.holder, __ATOMIC_RELAXED);
}

// The holder goes on unless the strategy says otherwise.
Thread* decide_at_point(const Moment& moment) {
  if (moment.self->no_preempt) return moment.self;
  Thread* choice = g_strategy->at_point(moment);
  if (choice != moment.self) log_decision(moment.self, moment.kind, choice, moment.pc);
  return choice;
}

// The holder has lost its turn: somebody else runs, if there is anybody.
Thread* decide_after_losing(Moment moment) {
  Thread* self = moment.self;
  self->spin_count = 0;
  g_sched.slice_end = g_sched.points + kSlicePoints;
  g_strategy->yielded(self);
  if (g_sched.ready.count == 0) {
    clock_waste();
    fire_deadlines();
    if (g_sched.ready.count == 0 && g_sched.descriptor_waiters != 0) poll_descriptors();
    if (g_sched.ready.count == 0 && g_sched.signal_waiters != 0) poll_signals();
    if (g_sched.ready.count == 0) return self;
  }
  moment.count = g_sched.ready.count;
  return choose_after(moment);
}

// With the lock held by the holder: passes the baton to `next` and waits for
// its return.
void switch_to(Thread* self, Thread* next) {
  rec_give();
  enter_ready(self);
  give_to(next);
  sched_unlock();
  wake_turn(next);
  wait_turn(self);
}

void point_slowly(PointKind kind, const volatile void* object, const void* pc) {
  Thread* self = t_self;
  const Busy busy(self);
  lock_as_holder();
  count_point(self, kind);
  stop_if_at_step(self);
  bool loses = kind == PointKind::kYield || g_sched.points >= g_sched.slice_end;
  if (object == self->spin_object && pc == self->spin_pc) {
    loses |= ++self->spin_count >= kSpinLimit;
  } else {
    self->spin_object = object;
    self->spin_pc = pc;
    self->spin_count = 0;
  }
  fire_deadlines();
  const Moment moment = {self, kind, object, pc, g_sched.ready.items, g_sched.ready.count};
  Thread* next = loses ? decide_after_losing(moment) : decide_at_point(moment);
  if (next != self) {
    switch_to(self, next);
  } else {
    arm();
    sched_unlock();
  }
  deliver_if_nudged(self);
}

// Waits, lock held, until `wait` is done.
WakeReason wait_for(Thread* self, Wait* wait, PointKind kind) {
  Wait* outer = self->wait;
  self->wait = wait;
  for (;;) {
    self->state = State::kBlocked;
    if (g_sched.ready.count == 0) idle(self);
    const Moment moment = {
        self, kind, wait->object, wait->pc, g_sched.ready.items, g_sched.ready.count};
    Thread* next = choose_after(moment);
    if (next == self) {  // idling has ended this very wait
      give_to(self);
      sched_unlock();
    } else {
      rec_give();
      give_to(next);
      sched_unlock();
      wake_turn(next);
      wait_turn(self);
    }
    deliver_if_nudged(self);
    if (wait->done) break;
    lock_as_holder();
    const bool interrupted = ((wait->interrupts & kInterruptSignal) != 0 && self->interrupted) ||
                             ((wait->interrupts & kInterruptHandler) != 0 && self->handled);
    if (!wait->done && interrupted) {
      end_wait(wait, WakeReason::kSignal);
    }
    if (wait->done) {
      sched_unlock();
      break;
    }
    ++self->steps;  // who runs while it goes on waiting is a decision of its own
  }
  self->wait = outer;
  return wait->reason;
}

WakeReason block(PointKind kind, Wait* wait) {
  Thread* self = t_self;
  const Busy busy(self);
  wait->thread = self;
  self->interrupted = self->handled = false;
  if (self->once_depth != 0) once_check(self);
  lock_as_holder();
  count_point(self, kind);
  stop_if_at_step(self);
  g_sched.blocked.push(wait);
  ++*waiters_for(wait->object);
  if (wait->deadline != kNoDeadline) ++g_sched.timed;
  if (wait->descriptors != nullptr) ++g_sched.descriptor_waiters;
  if ((wait->interrupts & kInterruptHandler) != 0) ++g_sched.signal_waiters;
  return wait_for(self, wait, kind);
}

// With the lock held; `self` is outside and wants back.
void queue_up(Thread* self) {
  --g_sched.outside;
  // When it came back was the kernel's choice, unless nobody else could run
  // meanwhile.
  if (g_sched.live > 1) g_sched.sources |= HEDDLE_SOURCE_KERNEL;
  enter_ready(self);
  if (load_holder() == nullptr) {
    const Moment moment = {self,    PointKind::kSyscall, nullptr,
                           nullptr, g_sched.ready.items, g_sched.ready.count};
    Thread* next = choose_after(moment);
    give_to(next);
    sched_unlock();
    if (next == self) {
      rec_take(self->id);
      return;
    }
    wake_turn(next);
  } else {
    wake_idler();
    sched_unlock();
  }
  wait_turn(self);
}

}  // namespace

// ---- the lock
// -----------------------------------------------------------------------------------

void sched_lock() {
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&g_sched.lock, &expected, 1, false, __ATOMIC_ACQUIRE,
                                  __ATOMIC_RELAXED)) {
    return;
  }
  while (__atomic_exchange_n(&g_sched.lock, 2, __ATOMIC_ACQUIRE) != 0) {
    futex_wait(&g_sched.lock, 2, nullptr);
  }
}

void sched_unlock() {
  if (__atomic_exchange_n(&g_sched.lock, 0, __ATOMIC_RELEASE) == 2) futex_wake(&g_sched.lock, 1);
}

Thread* lock_as_holder() {
  Thread* self = t_self;
  sched_lock();
  while (load_holder() != self) {  // the watchdog took it, or this is a handler outside
    RT_CHECK(self->state == State::kOutside);
    queue_up(self);
    sched_lock();
  }
  return self;
}

bool take_nudge(Thread* self) {
  if ((__atomic_load_n(&self->turn, __ATOMIC_RELAXED) & kNudgeBit) == 0) return false;
  __atomic_fetch_and(&self->turn, ~kNudgeBit, __ATOMIC_RELAXED);
  self->nudged = true;
  return true;
}

void deliver_if_nudged(Thread* self) {
  take_nudge(self);
  if (!self->nudged) return;
  self->nudged = false;
  const bool busy = self->busy;
  self->busy = false;
  deliver_pending_signals();
  self->busy = busy;
}

// ---- queues and the baton
// -----------------------------------------------------------------------

void enter_ready(Thread* thread) {
  thread->state = State::kReady;
  g_sched.ready.push(thread);
}

void end_wait(Wait* wait, WakeReason reason) {
  g_sched.blocked.remove(wait);
  --*waiters_for(wait->object);
  if (wait->deadline != kNoDeadline) --g_sched.timed;
  if (wait->descriptors != nullptr) --g_sched.descriptor_waiters;
  if ((wait->interrupts & kInterruptHandler) != 0) --g_sched.signal_waiters;
  wait->done = true;
  wait->reason = reason;
  if (wait->thread->state == State::kBlocked && wait->thread->wait == wait) {
    enter_ready(wait->thread);
  }
}

void arm() {
  Thread* holder = load_holder();
  if (holder == nullptr) return;
  uint64_t next = g_strategy->next_point(holder);
  const bool others = g_sched.ready.count != 0 || g_sched.descriptor_waiters != 0;
  if ((others || g_sched.timed != 0) && g_sched.slice_end < next) next = g_sched.slice_end;
  if (g_sched.timed != 0) {
    const uint64_t due = clock_point_of(next_deadline());
    if (due < next) next = due;
  }
  if (holder->id == g_sched.stop_thread && holder->steps < g_sched.stop_step) {
    const uint64_t stop = g_sched.points + (g_sched.stop_step - holder->steps);
    if (stop < next) next = stop;
  }
  // Where accesses are watched for, no point takes the short way.
  g_sched.next_action = g_sched.stop_watched ? 0 : next;
}

void give_to(Thread* next) {
  g_sched.ready.remove(next);
  next->state = State::kRunning;
  if (load_holder() != next) ++g_sched.switches;
  set_holder(next);
  g_sched.slice_end = g_sched.points + kSlicePoints;
  g_sched.ticks = 0;
  next->spin_count = 0;
  arm();
}

Thread* choose_after(const Moment& moment) {
  Thread* choice = g_strategy->after(moment);
  if (choice != moment.candidates[0]) log_decision(moment.self, moment.kind, choice, moment.pc);
  return choice;
}

void wake_turn(Thread* next) {
  __atomic_fetch_or(&next->turn, kTurnBit, __ATOMIC_RELEASE);
  futex_wake(&next->turn, 1);
}

void wait_turn(Thread* self) {
  for (;;) {
    const uint32_t word = __atomic_load_n(&self->turn, __ATOMIC_ACQUIRE);
    if ((word & kTurnBit) != 0) break;
    if ((word & kStackBit) != 0) {
      dump_own_stack(self);
      __atomic_fetch_and(&self->turn, ~kStackBit, __ATOMIC_RELEASE);
      futex_wake(&self->turn, 1);
    } else if ((word & kNudgeBit) != 0) {
      const SchedLocked locked;
      take_nudge(self);
      if (self->state == State::kBlocked) {
        enter_ready(self);
        wake_idler();
      }
    } else {
      futex_wait(&self->turn, word, nullptr);
    }
  }
  __atomic_fetch_and(&self->turn, ~kTurnBit, __ATOMIC_RELAXED);
  rec_take(self->id);
}

// ---- what interceptors call
// ---------------------------------------------------------------------

Thread* sched_self() {
  return t_self;
}
ThreadId sched_id(const Thread* thread) {
  return thread->id;
}
bool sched_holds() {
  return t_self != nullptr && load_holder() == t_self;
}
void sched_end() {
  g_sched.on = false;
  g_sched.quick = nobody();
}

namespace {

bool passes(PointKind kind, const volatile void* object, const void* pc) {
  Thread* self = t_self;
  if (self == nullptr || !g_sched.on || inside()) return true;
  // Memory of one thread is no reason for a switch.
  if (kind == PointKind::kAccess && g_sched.shared_only && load_holder() == self &&
      !access_is_shared(object)) {
    return note_place(self, object, pc, kPrivateSpinLimit);
  }
  if (load_holder() != self || g_sched.points + 1 >= g_sched.next_action ||
      kind == PointKind::kYield || self->async_cancel || self->once_depth != 0) {
    return false;
  }
  if (!note_place(self, object, pc, kSpinLimit)) return false;
  count_point(self, kind);
  if (has_cursor()) g_sched.quick = self;
  return true;
}

// The same, when there are accesses to stop at: the debugger stops when nothing stands between the
// thread and its access any more.
bool passes_watched(PointKind kind, const volatile void* object, const void* pc) {
  Thread* self = t_self;
  const Watched watched =
      g_sched.on && sched_holds() && !inside() ? stop_watch(self, pc) : Watched::kNot;
  if (watched == Watched::kStop) stop_here(self);
  if (watched == Watched::kOnly || watched == Watched::kStop) return true;
  const bool passed = passes(kind, object, pc);
  if (watched != Watched::kStopPoint) return passed;
  if (passed) {
    stop_here(self);
  } else {
    self->stop_due = true;
  }
  return passed;
}

}  // namespace

bool sched_point_passes(PointKind kind, const volatile void* object, const void* pc) {
  return g_sched.stop_watched ? passes_watched(kind, object, pc) : passes(kind, object, pc);
}

void sched_point(PointKind kind, const volatile void* object, const void* pc) {
  if (kind != PointKind::kAccess && kind != PointKind::kYield &&
      quick_point_passes(kind, object, pc)) {
    return;
  }
  if (passes(kind, object, pc)) return;
  Thread* self = t_self;
  if (self->once_depth != 0) once_check(self);
  point_slowly(kind, object, pc);
  if (self->stop_due) {
    self->stop_due = false;
    stop_here(self);
  }
  if (self->async_cancel && !self->busy) pthread_testcancel();
}

// A loop over plain memory that waits for another thread fills block after
// block without a point.
void sched_tick(uint64_t blocks) {
  Thread* self = t_self;
  if (!sched_holds() || !g_sched.on || self->busy) return;
  if (g_sched.points != g_sched.tick_points) {
    g_sched.tick_points = g_sched.points;
    g_sched.ticks = 0;
    return;
  }
  g_sched.ticks += blocks;
  if (g_sched.ticks < g_sched.patience || g_sched.ready.count + g_sched.blocked.count == 0) return;
  g_sched.ticks = 0;
  const Busy busy(self);
  lock_as_holder();
  const Moment moment = {self,    PointKind::kYield,   nullptr,
                         nullptr, g_sched.ready.items, g_sched.ready.count};
  Thread* next = decide_after_losing(moment);
  if (next != self) {
    switch_to(self, next);
  } else {
    arm();
    sched_unlock();
  }
  deliver_if_nudged(self);
}

void sched_need_baton() {
  Thread* self = t_self;
  if (self == nullptr || !g_sched.on || load_holder() == self) return;
  const Busy busy(self);
  lock_as_holder();
  sched_unlock();
}

WakeReason sched_block(PointKind kind, const volatile void* object, const char* what,
                       uint64_t deadline, unsigned interrupts, const void* pc) {
  Wait wait = {};
  wait.object = object;
  wait.what = what;
  wait.pc = pc;
  wait.deadline = deadline;
  wait.interrupts = interrupts;
  return block(kind, &wait);
}

WakeReason block_on_descriptors(pollfd* descriptors, unsigned count, const char* what,
                                uint64_t deadline, const void* pc) {
  Wait wait = {};
  wait.what = what;
  wait.pc = pc;
  wait.deadline = deadline;
  wait.interrupts = kInterruptCancel | kInterruptSignal;
  wait.descriptors = descriptors;
  wait.descriptor_count = count;
  return block(PointKind::kSyscall, &wait);
}

WakeReason block_on_signals(uint64_t signals, const char* what, uint64_t deadline, const void* pc) {
  Wait wait = {};
  wait.what = what;
  wait.pc = pc;
  wait.deadline = deadline;
  wait.interrupts = kInterruptCancel | kInterruptHandler;
  wait.signals = signals;
  return block(PointKind::kSyscall, &wait);
}

unsigned sched_wake(const volatile void* object, unsigned count) {
  if (__atomic_load_n(waiters_for(object), __ATOMIC_RELAXED) == 0 || !g_sched.on) return 0;
  Thread* self = t_self;
  const bool holder = self != nullptr && load_holder() == self;
  const bool busy = holder && self->busy;
  if (holder) self->busy = true;
  sched_lock();
  unsigned woken = 0;
  while (woken < count) {
    unsigned candidates = 0;
    Wait* first_wait = nullptr;
    for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
      Wait* wait = g_sched.blocked.items[i];
      if (wait->object != object) continue;
      if (first_wait == nullptr) first_wait = wait;
      g_sched.scratch[candidates++] = wait->thread;
    }
    if (candidates == 0) break;
    Wait* chosen = first_wait;
    if (holder && candidates > count - woken) {
      ++self->steps;
      const Moment moment = {self, PointKind::kWake, object, nullptr, g_sched.scratch, candidates};
      Thread* choice = g_strategy->wake(moment);
      if (choice != g_sched.scratch[0]) log_decision(self, PointKind::kWake, choice, nullptr);
      for (unsigned i = 0; i < g_sched.blocked.count; ++i) {
        Wait* wait = g_sched.blocked.items[i];
        if (wait->object == object && wait->thread == choice) chosen = wait;
      }
    }
    end_wait(chosen, WakeReason::kWoken);
    ++woken;
  }
  if (woken != 0) {
    if (holder) {
      arm();
    } else {
      wake_idler();
    }
  }
  sched_unlock();
  if (holder) self->busy = busy;
  return woken;
}

void sched_leave_game() {
  Thread* self = t_self;
  const Busy busy(self);
  lock_as_holder();
  count_point(self, PointKind::kSyscall);
  rec_give();
  self->state = State::kOutside;
  ++g_sched.outside;
  if (g_sched.ready.count == 0) {
    set_holder(nullptr);  // whoever comes back first, or the watchdog, goes on
    sched_unlock();
    return;
  }
  const Moment moment = {self,    PointKind::kSyscall, nullptr,
                         nullptr, g_sched.ready.items, g_sched.ready.count};
  Thread* next = choose_after(moment);
  give_to(next);
  sched_unlock();
  wake_turn(next);
}

void sched_join_game() {
  Thread* self = t_self;
  const Busy busy(self);
  sched_lock();
  if (self->state == State::kOutside) {
    queue_up(self);
  } else {
    sched_unlock();
  }
  deliver_if_nudged(self);
}

void sched_brief_begin(bool patient) {
  t_self->brief = true;
  t_self->patient = patient;
}
void sched_brief_end() {
  Thread* self = t_self;
  self->brief = false;
  self->patient = false;
  if (load_holder() != self) sched_need_baton();
}

SchedCounts sched_counts() {
  return {g_sched.points, g_sched.switches, g_sched.hash, g_sched.thread_count, g_sched.seized};
}

}  // namespace heddle::rt
