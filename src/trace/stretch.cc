#include "trace/stretch.h"

#include <algorithm>
#include <array>

namespace heddle {

void EventTaker::on_stretch(const Stretch& stretch) {
  std::array<Event, 256> events;
  EventOrdinal ordinal = stretch.first;
  for (auto rest = stretch.events; !rest.empty();) {
    const std::size_t count = std::min(rest.size(), events.size());
    for (std::size_t n = 0; n < count; ++n) events[n] = event_of(rest[n], stretch.thread);
    on(std::span(events).first(count), ordinal);
    ordinal += count;
    rest = rest.subspan(count);
  }
}

}  // namespace heddle
