#include "collect/filter_testing.h"

namespace heddle::collect {
namespace {

TEST(SharedFilter, PassesWhatTwoThreadsTouchAndTheLastPrivateAccess) {
  const auto access = [](ThreadId thread, EventKind kind, Address address, std::uint32_t size) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.size = size & 0x7fffffffu;
    event.site = 7 + thread;
    return event;
  };
  Taken taken;
  const auto filter = shared_filter(taken);
  const std::vector<Event> events = {
      access(0, EventKind::kWrite, 0x100, 8), access(0, EventKind::kRead, 0x102, 4),
      access(0, EventKind::kRead, 0x108, 8),  access(1, EventKind::kRead, 0x200, 4),
      access(1, EventKind::kWrite, 0x104, 2), access(0, EventKind::kRead, 0x100, 1),
      access(1, EventKind::kRead, 0xfc, 8)};
  filter->on(events, 0);
  const std::vector<Event>& passed = taken.events;
  ASSERT_EQ(passed.size(), 4u);
  EXPECT_EQ(passed[0], events[1]);
  EXPECT_EQ(passed[1], events[4]);
  EXPECT_EQ(passed[2], events[5]);
  EXPECT_EQ(passed[3], events[6]);
  EXPECT_EQ(filter->accesses(), 7u);
}

TEST(SharedFilter, ANewBlockHasNoPast) {
  Taken taken;
  const auto filter = shared_filter(taken);
  Event event;
  event.kind = EventKind::kWrite;
  event.address = 0x100;
  event.size = 8;
  Event alloc;
  alloc.kind = EventKind::kAlloc;
  alloc.thread = 1;
  alloc.address = 0x100;
  alloc.value = 16;
  Event other = event;
  other.thread = 1;
  const std::vector<Event> events = {event, alloc, other};
  filter->on(events, 0);
  const std::vector<Event>& passed = taken.events;
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0], alloc);
}

}  // namespace
}  // namespace heddle::collect
