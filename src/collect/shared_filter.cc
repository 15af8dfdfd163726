#include "collect/shared_filter.h"

#include <algorithm>

namespace heddle::collect {

std::uint64_t SharedFilter::pack(const Event& event) {
  const std::uint64_t size = std::clamp<std::uint64_t>(event.size, 1, kGranuleMask + 1);
  return static_cast<std::uint64_t>(event.order) << 60 |
         static_cast<std::uint64_t>(event.kind) << 58 | (size - 1) << 55 | event.site;
}

Event SharedFilter::unpack(std::uint64_t word, Address granule) {
  Event event;
  event.order = static_cast<MemoryOrder>(word >> 60 & 7);
  event.kind = static_cast<EventKind>(word >> 58 & 3);
  event.size = (word >> 55 & 7) + 1;
  event.address = granule + (word >> kOffsetShift & 7);
  event.thread = static_cast<ThreadId>((word & kThreadBits) >> kThreadShift);
  event.site = static_cast<SiteId>(word);
  return event;
}

// An access to one granule. Whether the granule is shared; the last private access of one that
// becomes shared by it goes to `out`.
bool SharedFilter::touch(Address address, std::uint64_t packed, ThreadId thread, EventBuffer& out) {
  Shadow::Chunk& chunk = shadow_.chunk(address);
  std::uint8_t& state = chunk.states[Shadow::place(address)];
  std::uint64_t& word = chunk.words[Shadow::place(address)];
  if (state == kShared) return true;
  const Owner mine = owner(thread);
  if (state != kUntouched && (word & kThreadBits) != mine.bits) {
    out.add(unpack(word, address & ~kGranuleMask));
    state = kShared;
    return true;
  }
  state = mine.state;
  word = packed | mine.bits | (address & kGranuleMask) << kOffsetShift;
  return false;
}

// Granule by granule. Whether the access passes.
bool SharedFilter::access(const Event& event, EventBuffer& out) {
  if (event.size == 0) return false;
  const Address end = event.address + event.size;
  if (!Shadow::covers(event.address) || !Shadow::covers(end)) return true;
  bool shared = false;
  for (Address at = event.address; at < end;) {
    const Address next = std::min(end, (at & ~kGranuleMask) + kGranuleMask + 1);
    Event part = event;
    part.size = static_cast<std::uint32_t>(next - at) & 0x7fffffffu;
    shared |= touch(at, pack(part), event.thread, out);
    at = next;
  }
  return shared;
}

void SharedFilter::pass_one(const Event& event, EventBuffer& out) {
  if (is_access(event.kind)) ++accesses_;
  pass_counted(event, out);
}

void SharedFilter::pass_counted(const Event& event, EventBuffer& out) {
  if (is_access(event.kind)) {
    if (!access(event, out)) return;
  } else if (event.kind == EventKind::kAlloc) {
    shadow_.clear(event.address, event.value);
  }
  out.add(event);
}

std::span<const Event> SharedFilter::pass(std::span<const Event> events) {
  passed_.clear();
  for (const Event& event : events) pass_one(event, passed_);
  return passed_.events();
}

}  // namespace heddle::collect
