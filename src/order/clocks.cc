#include "order/clocks.h"

#include <algorithm>

namespace heddle {

Clocks::Clocks(std::size_t smallest) : times_(stride_), smallest_(smallest), limit_(smallest) {}

void Clocks::make_room(Slot slot) {
  if (slot < stride_) return;
  std::size_t wider = stride_;
  while (wider <= slot) wider *= 2;
  std::vector<Time> times(clocks_ * wider);
  for (std::size_t i = 0; i < clocks_; ++i) {
    std::copy_n(times_.begin() + static_cast<std::ptrdiff_t>(i * stride_), stride_,
                times.begin() + static_cast<std::ptrdiff_t>(i * wider));
  }
  times_ = std::move(times);
  stride_ = wider;
}

ClockId Clocks::allocate() {
  ++in_use_;
  if (!free_.empty()) {
    const ClockId out = free_.back();
    free_.pop_back();
    return out;
  }
  times_.resize(times_.size() + stride_);
  HEDDLE_CHECK(clocks_ < 0xffffffffu);
  return static_cast<ClockId>(clocks_++);
}

ClockId Clocks::join(ClockId base, const Moment& moment) {
  const ClockId out = allocate();
  Time* const to = &times_[out * stride_];
  const Time* const a = &times_[base * stride_];
  const Time* const b = &times_[moment.clock * stride_];
  for (std::size_t i = 0; i < stride_; ++i) to[i] = std::max(a[i], b[i]);
  if (moment.slot != kNoSlot) to[moment.slot] = std::max(to[moment.slot], moment.time);
  return out;
}

Moment Clocks::join(const Moment& a, const Moment& b) {
  const ClockId clock = join(a.clock, b);
  if (a.slot != kNoSlot) {
    Time& own = times_[clock * stride_ + a.slot];
    own = std::max(own, a.time);
  }
  return {clock, kNoSlot, 0};
}

bool Clocks::knows(ClockId clock, const Moment& moment, Slot own) const {
  if (moment.slot != kNoSlot) return known(clock, moment.slot) >= moment.time;
  if (moment.clock == clock || moment.clock == 0) return true;
  const Time* const a = &times_[clock * stride_];
  const Time* const b = &times_[moment.clock * stride_];
  for (std::size_t i = 0; i < stride_; ++i) {
    if (b[i] > a[i] && i != own) return false;
  }
  return true;
}

void Clocks::begin_marking() {
  marked_.assign(clocks_, 0);
  marked_[0] = 1;
}

void Clocks::sweep() {
  free_.clear();
  in_use_ = 0;
  // From the back, so that low ids are handed out first and the working set stays dense.
  for (std::size_t i = clocks_; i-- > 1;) {
    if (marked_[i]) {
      ++in_use_;
    } else {
      free_.push_back(static_cast<ClockId>(i));
    }
  }
  limit_ = std::max(smallest_, 2 * in_use_);
}

}  // namespace heddle
