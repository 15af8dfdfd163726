// The two questions detectors ask about order, without clocks: was that access ordered before what
// this thread does now, and which locks were held at it?
//
//   Order order;
//   for each event: order.on(event, ordinal);
//     at an access worth remembering:  Point p = order.point(event.thread, ordinal);
//     at a later access:               if (!order.ordered(p, event.thread)) …
//
// A Point is small and stays valid for the whole run.
#pragma once

#include "order/happens_before.h"
#include "order/locks_held.h"

namespace heddle {

struct Point {
  Time time{};  // 0 = no event
  Slot slot{kNoSlot};
  LockSetId locks{};

  bool empty() const { return time == 0; }
  EventOrdinal ordinal() const { return ordinal_of(time); }
};

class Order {
 public:
  void on(const Event& event, EventOrdinal ordinal) {
    if (is_access(event.kind) && event.order == MemoryOrder::kPlain) return;
    locks_.on(event);
    happens_before_.on(event, ordinal);
    if (happens_before_.wants_collection(0)) {
      happens_before_.begin_collection();
      happens_before_.end_collection();
    }
  }

  Point point(ThreadId thread, EventOrdinal ordinal) {
    return {time_of(ordinal), happens_before_.slot(thread), locks_.current(thread)};
  }

  // Did the event at `earlier` happen before what `thread` does now?
  bool ordered(const Point& earlier, ThreadId thread) {
    happens_before_.slot(thread);
    return happens_before_.ordered(earlier.slot, earlier.time, thread);
  }

  LockSetId locks(ThreadId thread) const { return locks_.current(thread); }
  const LocksHeld& locks_held() const { return locks_; }

 private:
  HappensBefore happens_before_;
  LocksHeld locks_;
};

}  // namespace heddle
