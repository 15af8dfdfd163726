#include "collect/shared_filter.h"

#include <algorithm>

namespace heddle::collect {
namespace {

// The shadow word of a private granule: its last access. Zero: nobody has touched it.
//   63 shared   62..60 memory order   59..58 kind   57..55 size - 1   54..52 offset
//   51..32 thread   31..0 site
constexpr std::uint64_t kShared = std::uint64_t{1} << 63;
constexpr std::uint64_t kThreadMask = 0xfffff;
constexpr Address kGranuleMask = 7;

std::uint64_t pack(const Event& event, Address address, unsigned size) {
  return static_cast<std::uint64_t>(event.order) << 60 |
         static_cast<std::uint64_t>(event.kind) << 58 | static_cast<std::uint64_t>(size - 1) << 55 |
         (address & kGranuleMask) << 52 | (event.thread & kThreadMask) << 32 | event.site;
}

Event unpack(std::uint64_t word, Address granule) {
  Event event;
  event.order = static_cast<MemoryOrder>(word >> 60 & 7);
  event.kind = static_cast<EventKind>(word >> 58 & 3);
  event.size = (word >> 55 & 7) + 1;
  event.address = granule + (word >> 52 & 7);
  event.thread = static_cast<ThreadId>(word >> 32 & kThreadMask);
  event.site = static_cast<SiteId>(word);
  return event;
}

}  // namespace

bool SharedFilter::become_shared(std::uint64_t& word, const Event& event, std::vector<Event>& out) {
  out.push_back(unpack(word, event.address & ~kGranuleMask));
  word = kShared;
  return true;
}

bool SharedFilter::access(const Event& event, std::vector<Event>& out) {
  const Address offset = event.address & kGranuleMask;
  if (offset + event.size > kGranuleMask + 1 || event.size == 0 || !Shadow::covers(event.address)) {
    return wide_access(event, out);
  }
  std::uint64_t& word = shadow_.at(event.address);
  if ((word & kShared) != 0) return true;
  const std::uint64_t mine = pack(event, event.address, event.size);
  if (word == 0 || ((word ^ mine) >> 32 & kThreadMask) == 0) {
    word = mine;
    return false;
  }
  return become_shared(word, event, out);
}

bool SharedFilter::wide_access(const Event& event, std::vector<Event>& out) {
  if (event.size == 0) return false;
  const Address end = event.address + event.size;
  if (!Shadow::covers(event.address) || !Shadow::covers(end)) return true;
  bool shared = false;
  for (Address at = event.address; at < end;) {
    const Address next = std::min(end, (at & ~kGranuleMask) + 8);
    std::uint64_t& word = shadow_.at(at);
    const std::uint64_t mine = pack(event, at, static_cast<unsigned>(next - at));
    if ((word & kShared) != 0) {
      shared = true;
    } else if (word == 0 || ((word ^ mine) >> 32 & kThreadMask) == 0) {
      word = mine;
    } else {
      Event part = event;
      part.address = at;
      shared = become_shared(word, part, out);
    }
    at = next;
  }
  return shared;
}

std::span<const Event> SharedFilter::pass(std::span<const Event> events) {
  passed_.clear();
  for (const Event& event : events) {
    if (is_access(event.kind)) {
      ++accesses_;
      if (access(event, passed_)) passed_.push_back(event);
      continue;
    }
    if (event.kind == EventKind::kAlloc) shadow_.clear(event.address, event.value);
    passed_.push_back(event);
  }
  return passed_;
}

}  // namespace heddle::collect
