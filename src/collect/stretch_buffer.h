// StretchBuffer: hands what the decoder reads to a taker, accesses and calls in stretches and
// everything else as events, in one order. Only one of the two waits here at a time.
#pragma once

#include "collect/event_buffer.h"
#include "trace/stretch.h"

#include <array>
#include <cstddef>

namespace heddle::collect {

class StretchBuffer {
 public:
  static constexpr std::size_t kMost = 1024;  // 16 KiB

  explicit StretchBuffer(EventTaker& taker) : taker_(taker) {}

  // Where the next events of this thread go, up to end(). There is room for `count`, which is at
  // most kMost.
  CompactEvent* room(std::size_t count, ThreadId thread) {
    hand_over_events();
    if (thread != thread_ || used_ + count > kMost) hand_over_stretch();
    thread_ = thread;
    return compact_.data() + used_;
  }
  const CompactEvent* end() const { return compact_.data() + kMost; }
  // So far they were stored.
  void stored(const CompactEvent* end) { used_ = static_cast<std::size_t>(end - compact_.data()); }

  // Where the next events go that are not for a stretch.
  EventBuffer& events() {
    hand_over_stretch();
    return events_;
  }

  // Everything that waits.
  void hand_over() {
    hand_over_stretch();
    hand_over_events();
  }

 private:
  void hand_over_stretch() {
    if (used_ == 0) return;
    taker_.on_stretch({thread_, ordinal_, {compact_.data(), used_}});
    ordinal_ += used_;
    used_ = 0;
  }
  void hand_over_events() {
    if (events_.size() == 0) return;
    taker_.on(events_.events(), ordinal_);
    ordinal_ += events_.size();
    events_.clear();
  }

  EventTaker& taker_;
  EventOrdinal ordinal_ = 0;
  ThreadId thread_ = 0;
  std::size_t used_ = 0;
  std::array<CompactEvent, kMost> compact_;
  EventBuffer events_;
};

}  // namespace heddle::collect
