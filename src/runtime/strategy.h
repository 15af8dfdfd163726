// Strategies: who runs next.
//
// A strategy is one file, strategy_NAME.cc, that ends in
//
//   static const Strategy kName = {.name = "name", …};
//   HEDDLE_STRATEGY(kName)
//
// It never waits, never looks at an address for anything but equality, and draws from g_random
// only.
//
// All calls are made with the scheduler's lock held. Candidates come in the order in which they
// became ready; waiters in the order in which they arrived.
#pragma once

#include "runtime/sched_state.h"

namespace heddle::rt {

// What there is to decide.
struct Moment {
  Thread* self;  // whose step it is; for `after` it cannot or must not go on
  PointKind kind;
  const volatile void* object;
  const void* pc;
  Thread* const* candidates;
  unsigned count;
};

struct Strategy {
  const char* name;
  const char* help;

  // Once, before the first point (again in the child of a fork).
  void (*start)();

  // The number of the point at which at_point wants to be asked, now that `holder` runs and the
  // points up to g_sched.points have passed; kNever for not at all.
  uint64_t (*next_point)(Thread* holder);

  // The holder could go on: return it, or the candidate that runs instead.
  Thread* (*at_point)(const Moment& moment);

  // The holder blocked, ended or lost its turn: return one of the candidates (there is one).
  Thread* (*after)(const Moment& moment);

  // Which of the waiters wakes.
  Thread* (*wake)(const Moment& moment);

  // A thread was created (its priority may be set), or lost its turn.
  void (*created)(Thread* thread);
  void (*yielded)(Thread* thread);

  // The run has ended.
  void (*finish)();
};

// A generator of our own: the same numbers on every machine.
struct Random {
  uint64_t state;
  void seed(uint64_t value) { state = value; }
  uint64_t next();
  uint64_t below(uint64_t limit);  // uniform in [0, limit)
};
extern Random g_random;

extern const Strategy* g_strategy;
void strategy_select();  // by the options; an unknown name warns and means fifo
void strategy_finish();

// The rules of the default schedule, for strategies that follow it.
inline uint64_t never(Thread*) {
  return kNever;
}
inline Thread* go_on(const Moment& moment) {
  return moment.self;
}
inline Thread* first(const Moment& moment) {
  return moment.candidates[0];
}
inline Thread* any(const Moment& moment) {
  return moment.candidates[moment.count == 1 ? 0 : g_random.below(moment.count)];
}
inline void nothing() {}
inline void no_note(Thread*) {}

}  // namespace heddle::rt

#define HEDDLE_STRATEGY(variable)                                                      \
  extern "C" __attribute__((section("heddle_strategies"), used, visibility("hidden"))) \
  const ::heddle::rt::Strategy* const heddle_strategy_##variable = &variable;
