// random: at every point the holder is switched out with probability 1/switch_every, for another
// ready thread, each as likely as the next. The distance to the next switch is drawn at once
// (geometric), so that the points in between cost a comparison.
#include "runtime/strategy.h"

namespace heddle::rt {
namespace {

uint64_t g_next;

// The number of the first success of trials of probability 1/switch_every.
uint64_t draw_distance() {
  const uint64_t every = rt_option(switch_every);
  if (every <= 1) return 1;
  uint64_t distance = 1;
  while (g_random.below(every) != 0 && distance < 1000000) ++distance;
  return distance;
}

void start() {
  g_next = g_sched.points + draw_distance();
}

uint64_t next_point(Thread*) {
  return g_next;
}

Thread* at_point(const Moment& moment) {
  if (g_sched.points < g_next) return moment.self;
  g_next = g_sched.points + draw_distance();
  return moment.count == 0 ? moment.self : any(moment);
}

}  // namespace

static const Strategy kRandom = {
    .name = "random",
    .help = "switch with probability 1/switch_every at every point, to any ready thread",
    .start = start,
    .next_point = next_point,
    .at_point = at_point,
    .after = any,
    .wake = any,
    .created = no_note,
    .yielded = no_note,
    .finish = nothing,
};
HEDDLE_STRATEGY(kRandom)

}  // namespace heddle::rt
