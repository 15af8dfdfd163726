// Data races by the definition, for tests: transitive closure over all events, byte by byte.
#pragma once

#include "order/random_run.h"

#include <map>
#include <vector>

namespace heddle::race {

struct ExpectedRaces {
  struct AtEvent {
    testing::EventMask partners = 0;     // unordered by happens-before
    testing::EventMask schedulable = 0;  // unordered by schedulable happens-before
  };
  // By byte, the events that race with an earlier one.
  std::map<Address, std::map<std::size_t, AtEvent>> races;
};

inline bool touches(const Event& event, Address byte) {
  return is_access(event.kind) && byte - event.address < event.size;
}

inline bool conflict(const Event& a, const Event& b) {
  return a.thread != b.thread && (is_write(a.kind) || is_write(b.kind)) &&
         (a.order == MemoryOrder::kPlain || b.order == MemoryOrder::kPlain);
}

inline ExpectedRaces races_by_definition(const std::vector<Event>& events) {
  using testing::EventMask;
  const std::vector<EventMask> before = testing::happens_before_by_definition(events);
  // Schedulable happens-before: in addition, the last write → the read of its value, where the two
  // conflict. `pre` of an event leaves out the edge into the event itself.
  std::vector<EventMask> pre(events.size());
  std::vector<EventMask> with_reads(events.size());
  ExpectedRaces out;
  for (std::size_t j = 0; j < events.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (testing::directly_before(events, i, j)) pre[j] |= with_reads[i] | (EventMask{1} << i);
    }
    with_reads[j] = pre[j];
    if (!is_access(events[j].kind)) continue;
    for (Address byte = events[j].address; byte < events[j].address + events[j].size; ++byte) {
      ExpectedRaces::AtEvent found;
      bool write_seen = false;
      for (std::size_t i = j; i-- > 0;) {
        if (!touches(events[i], byte)) continue;
        const EventMask bit = EventMask{1} << i;
        if (is_write(events[i].kind) && !write_seen) {
          write_seen = true;
          if (is_read(events[j].kind) && conflict(events[i], events[j])) {
            with_reads[j] |= with_reads[i] | bit;
          }
        }
        if (!conflict(events[i], events[j])) continue;
        if (!(before[j] & bit)) found.partners |= bit;
        if (!(pre[j] & bit)) found.schedulable |= bit;
      }
      if (found.partners != 0) out.races[byte][j] = found;
    }
  }
  return out;
}

}  // namespace heddle::race
