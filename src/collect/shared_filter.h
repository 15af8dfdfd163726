// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// shadow word holds the last access while only one thread has touched it. When another thread
// comes, that last access is delivered, late, right before the one that made the granule shared;
// from then on every access is delivered.
//
// Everything that is not an access passes. A new block of memory starts without a past.
//
// The decoder asks `look` for every access of a segment before it makes an event of it: an access
// of private memory then costs a look at its shadow word and a store, and no event is ever made.
#pragma once

#include "collect/event_buffer.h"
#include "collect/shadow.h"
#include "trace/event.h"

#include <cstdint>
#include <span>

namespace heddle::collect {

class SharedFilter {
 public:
  enum class Look { kPrivate, kShared, kUnknown };

  // What passes of `events`; valid until the next call.
  std::span<const Event> pass(std::span<const Event> events);

  // One event: appended to `out` if it passes, after the last private access of a granule that
  // becomes shared by it.
  void pass_one(const Event& event, EventBuffer& out);

  // An access in the form that the shadow keeps, but for its address and its thread.
  static std::uint64_t pack(const Event& event);

  // The common case of an access: kUnknown leaves everything to pass_one. `packed` has its thread.
  Look look(Address address, unsigned size, std::uint64_t packed) {
    const Address offset = address & kGranuleMask;
    if (offset + size > kGranuleMask + 1 || size == 0 || !Shadow::covers(address)) {
      return Look::kUnknown;
    }
    std::uint64_t& word = shadow_.at(address);
    if ((word & kShared) != 0) return Look::kShared;
    if (word != 0 && ((word ^ packed) & kThreadBits) != 0) return Look::kUnknown;
    word = packed | offset << kOffsetShift;
    return Look::kPrivate;
  }
  static std::uint64_t thread_bits(ThreadId thread) {
    return static_cast<std::uint64_t>(thread) << kThreadShift & kThreadBits;
  }
  void count(std::uint64_t accesses) { accesses_ += accesses; }  // those that `look` has seen

  std::uint64_t accesses() const { return accesses_; }

 private:
  // The shadow word of a private granule: its last access. Zero: nobody has touched it.
  //   63 shared   62..60 memory order   59..58 kind   57..55 size - 1   54..52 offset
  //   51..32 thread   31..0 site
  static constexpr std::uint64_t kShared = std::uint64_t{1} << 63;
  static constexpr unsigned kOffsetShift = 52;
  static constexpr unsigned kThreadShift = 32;
  static constexpr std::uint64_t kThreadBits = std::uint64_t{0xfffff} << kThreadShift;
  static constexpr Address kGranuleMask = 7;

  static Event unpack(std::uint64_t word, Address granule);
  bool access(const Event& event, EventBuffer& out);

  Shadow shadow_;
  EventBuffer passed_;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
