// pct: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A
// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).
//
// Every thread has a priority, drawn at its creation; the ready thread of the highest priority
// runs. At pct_depth - 1 points, drawn before the run from the first pct_length points, the
// priority of the thread that runs drops below all others'. A bug of depth d in a run of n threads
// and k points is then found with probability at least 1/(n·k^(d-1)). `heddle try` measures k in
// its first runs.
//
// Where we differ: a thread that spins or yields drops below everybody as well, because otherwise
// the highest priority waits for ever for a lower one.
#include "runtime/strategy.h"

namespace heddle::rt {
namespace {

constexpr unsigned kMaxChanges = 64;
constexpr uint64_t kHigh = 1ull << 32;  // initial priorities are above, changed ones below

uint64_t g_changes[kMaxChanges];  // ascending
unsigned g_change_count;
unsigned g_next_change;
uint64_t g_lowest;  // the next priority given to one that dropped

void start() {
  const uint64_t depth = rt_option(pct_depth);
  const uint64_t length = rt_option(pct_length) == 0 ? 1 : rt_option(pct_length);
  g_change_count = depth <= 1 ? 0 : static_cast<unsigned>(depth - 1);
  if (g_change_count > kMaxChanges) g_change_count = kMaxChanges;
  for (unsigned i = 0; i < g_change_count; ++i) {
    const uint64_t at = g_sched.points + 1 + g_random.below(length);
    unsigned place = i;
    while (place > 0 && g_changes[place - 1] > at) {
      g_changes[place] = g_changes[place - 1];
      --place;
    }
    g_changes[place] = at;
  }
  g_next_change = 0;
  g_lowest = kHigh - 1;
}

void created(Thread* thread) {
  thread->priority = kHigh + (g_random.next() >> 16);
}

void drop(Thread* thread) {
  thread->priority = g_lowest--;
}

Thread* highest(const Moment& moment, Thread* best) {
  for (unsigned i = 0; i < moment.count; ++i) {
    if (best == nullptr || moment.candidates[i]->priority > best->priority) {
      best = moment.candidates[i];
    }
  }
  return best;
}

uint64_t next_point(Thread* holder) {
  for (unsigned i = 0; i < g_sched.ready.count; ++i) {
    if (g_sched.ready.items[i]->priority > holder->priority) return g_sched.points + 1;
  }
  return g_next_change < g_change_count ? g_changes[g_next_change] : kNever;
}

Thread* at_point(const Moment& moment) {
  while (g_next_change < g_change_count && g_sched.points >= g_changes[g_next_change]) {
    drop(moment.self);
    ++g_next_change;
  }
  return highest(moment, moment.self);
}

Thread* after(const Moment& moment) {
  return highest(moment, nullptr);
}

}  // namespace

static const Strategy kPct = {
    .name = "pct",
    .help = "random priorities with pct_depth - 1 changes within pct_length points",
    .start = start,
    .next_point = next_point,
    .at_point = at_point,
    .after = after,
    .wake = any,
    .created = created,
    .yielded = drop,
    .finish = nothing,
};
HEDDLE_STRATEGY(kPct)

}  // namespace heddle::rt
