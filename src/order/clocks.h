// Clocks: what is known at a moment of the run about every thread's past.
//
// The time of an event is its ordinal plus one, so every event of the trace has a time of its own
// and the number tells which event it was. A clock maps each slot (a thread, or several threads one
// after the other, see HappensBefore) to the time of the latest event known to have happened
// before; 0 = none.
//
// Clocks are immutable. A thread points at one and gets a new one when it learns something; a
// release is a copy of the pointer plus the releasing thread's own time (a Moment), without a loop
// over threads. That makes it free to remember with every write what its thread knew, which
// schedulable happens-before needs at a racing read.
//
// Whoever holds ClockIds for long takes part in the collection: when crowded(), mark the ids that
// are still in use, then sweep(). The number of clocks is then bounded by what is live.
#pragma once

#include "base/check.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

namespace heddle {

using Time = std::uint64_t;
using Slot = std::uint32_t;
using ClockId = std::uint32_t;  // 0 = knows nothing

inline constexpr Slot kNoSlot = 0xffffffffu;

inline constexpr Time time_of(EventOrdinal ordinal) {
  return ordinal + 1;
}
inline constexpr EventOrdinal ordinal_of(Time time) {
  return time - 1;
}

// What `slot` knew right after its event at `time`: `clock`, and its own past up to `time`. With
// slot == kNoSlot, several threads' knowledge put together: `clock` alone.
struct Moment {
  ClockId clock{};
  Slot slot{kNoSlot};
  Time time{};

  bool empty() const { return clock == 0 && slot == kNoSlot; }
};

class Clocks {
 public:
  // Collection is asked for from `smallest` clocks on.
  explicit Clocks(std::size_t smallest = 4096);

  Time known(ClockId clock, Slot slot) const { return times_[clock * stride_ + slot]; }

  const Time* row(ClockId clock) const { return &times_[clock * stride_]; }  // until the next join

  // Makes room for slots 0 … slot.
  void make_room(Slot slot);

  // A new clock: everything in `base` and in `moment`.
  ClockId join(ClockId base, const Moment& moment);
  // A new moment without a slot: everything in both.
  Moment join(const Moment& a, const Moment& b);

  // Does `clock` know everything in `moment`? For a moment of one thread one number decides,
  // because who knows an event knows what was known at it. `own` is the slot of whoever asks: of
  // its own past it knows everything.
  bool knows(ClockId clock, const Moment& moment, Slot own) const;

  // Collection. `roots` is how many ids the caller will have to mark: the cost is spread.
  bool crowded(std::size_t roots) const { return in_use_ > limit_ && in_use_ > roots / 2; }
  void begin_marking();
  void mark(ClockId clock) { marked_[clock] = 1; }
  void sweep();

  std::size_t in_use() const { return in_use_; }

 private:
  ClockId allocate();

  std::size_t stride_ = 8;
  std::vector<Time> times_;
  std::vector<ClockId> free_;
  std::vector<std::uint8_t> marked_;
  std::size_t clocks_ = 1;
  std::size_t in_use_ = 0;
  std::size_t smallest_;
  std::size_t limit_;
};

}  // namespace heddle
