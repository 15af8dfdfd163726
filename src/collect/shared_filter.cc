#include "collect/shared_filter.h"

#include <algorithm>

namespace heddle::collect {

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
// becomes shared by it passes.
bool SharedFilter::touch_granule(Address address, std::uint64_t packed, ThreadId thread) {
  Shadow::Chunk& chunk = shadow_.chunk(address);
  std::uint8_t& state = chunk.states[Shadow::place(address)];
  std::uint64_t& word = chunk.words[Shadow::place(address)];
  if (state == kShared) return true;
  const Owner mine = owner(thread);
  if (state != kUntouched && (word & kThreadBits) != mine.bits) {
    passed_.add(unpack(word, address & ~kGranuleMask));
    state = kShared;
    return true;
  }
  state = mine.state;
  word = packed | mine.bits | (address & kGranuleMask) << kOffsetShift;
  return false;
}

// Granule by granule. Whether the access passes.
bool SharedFilter::touch(const Event& event) {
  if (event.size == 0) return false;
  const Address end = event.address + event.size;
  if (!Shadow::covers(event.address) || !Shadow::covers(end)) return true;
  bool shared = false;
  for (Address at = event.address; at < end;) {
    const Address next = std::min(end, (at & ~kGranuleMask) + kGranuleMask + 1);
    const std::uint64_t packed = pack(event.kind, event.order, event.site, next - at);
    shared |= touch_granule(at, packed, event.thread);
    at = next;
  }
  return shared;
}

void SharedFilter::hand_over() {
  if (passed_.size() == 0) return;
  next_.on(passed_.events(), ordinal_);
  ordinal_ += passed_.size();
  passed_.clear();
}

void SharedFilter::on(std::span<const Event> batch, EventOrdinal) {
  for (const Event& event : batch) {
    if (is_access(event.kind)) {
      ++accesses_;
      if (!touch(event)) continue;
    } else if (event.kind == EventKind::kAlloc) {
      shadow_.clear(event.address, event.value);
    }
    passed_.add(event);
  }
  hand_over();
}

void SharedFilter::on_stretch(const Stretch& stretch) {
  const Owner mine = owner(stretch.thread);
  compact_.resize(std::max(compact_.size(), stretch.events.size()));
  CompactEvent* const begin = compact_.data();
  CompactEvent* end = begin;
  std::uint64_t accesses = 0;
  const auto hand_over_compact = [&] {
    if (end == begin) return;
    const auto count = static_cast<std::size_t>(end - begin);
    next_.on_stretch({stretch.thread, ordinal_, {begin, count}});
    ordinal_ += count;
    end = begin;
  };
  for (const CompactEvent& event : stretch.events) {
    if (!is_access(event.what())) {
      const bool nothing_between =
          event.what() == EventKind::kLeave && end != begin && end[-1].what() == EventKind::kEnter;
      if (nothing_between) {
        --end;
      } else {
        *end++ = event;
      }
      continue;
    }
    ++accesses;
    const Look seen = look(event, mine);
    if (seen == Look::kPrivate) continue;
    if (seen == Look::kShared) {
      *end++ = event;
      continue;
    }
    hand_over_compact();
    if (touch(event_of(event, stretch.thread))) passed_.add(event_of(event, stretch.thread));
    hand_over();
  }
  hand_over_compact();
  accesses_ += accesses;
}

}  // namespace heddle::collect
