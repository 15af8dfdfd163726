// Stretch: what one thread did with nothing but accesses and calls in between, in half the room of
// events.
//
// A program that is being watched makes hundreds of millions of accesses a second, and seldom
// anything else than accesses and calls. Who can judge an access by address, size and site alone
// takes them in this form (EventTaker::on_stretch) and is spared the making and reading of events.
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <span>

namespace heddle {

// An access, an Enter or a Leave. Calls have their function where accesses have size and order.
struct CompactEvent {
  Address address{};
  SiteId site{};
  std::uint32_t kind : 8 {};
  std::uint32_t rest : 24 {};  // access: size, and the order above it; call: function

  static constexpr std::uint32_t kMostSize = 0xffff;
  static constexpr FunctionId kMostFunctions = 1u << 24;

  static constexpr CompactEvent access(EventKind kind, MemoryOrder order, SiteId site,
                                       std::uint32_t size, Address address) {
    return {address, site, static_cast<std::uint8_t>(kind),
            (static_cast<std::uint32_t>(order) << 16 | (size & kMostSize)) & 0xffffffu};
  }
  static constexpr CompactEvent call(EventKind kind, FunctionId function, SiteId site,
                                     Address object) {
    return {object, site, static_cast<std::uint8_t>(kind), function & 0xffffffu};
  }

  constexpr EventKind what() const { return static_cast<EventKind>(kind); }
  constexpr std::uint32_t size() const { return rest & kMostSize; }
  constexpr MemoryOrder order() const { return static_cast<MemoryOrder>(rest >> 16); }
  constexpr FunctionId function() const { return rest; }
};
static_assert(sizeof(CompactEvent) == 16);

struct Stretch {
  ThreadId thread{};
  EventOrdinal first{};  // the others follow one by one
  std::span<const CompactEvent> events;
};

constexpr Event event_of(const CompactEvent& compact, ThreadId thread) {
  Event event;
  event.kind = compact.what();
  event.thread = thread;
  event.site = compact.site;
  event.address = compact.address;
  if (is_access(event.kind)) {
    event.order = compact.order();
    event.size = compact.rest & CompactEvent::kMostSize;
  } else {
    event.value = compact.function();
  }
  return event;
}

// Takes a run's events in their total order, in one form or the other.
class EventTaker {
 public:
  EventTaker() = default;
  EventTaker(const EventTaker&) = delete;
  EventTaker& operator=(const EventTaker&) = delete;
  virtual ~EventTaker() = default;

  // The next events; `first` is the ordinal of batch[0].
  virtual void on(std::span<const Event> batch, EventOrdinal first) = 0;

  // The next events, as a stretch. Unless overridden they come as events.
  virtual void on_stretch(const Stretch& stretch);
};

}  // namespace heddle
