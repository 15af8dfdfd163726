// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// state is the thread that has it, and its shadow word holds the last access. When another thread
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

#include <bit>
#include <cstdint>
#include <span>

namespace heddle::collect {

class SharedFilter {
 public:
  enum class Look { kPrivate, kShared, kUnknown };

  // A thread, as the words and the states name it.
  struct Owner {
    std::uint64_t bits;
    std::uint8_t state;
  };

  // What passes of `events`; valid until the next call.
  std::span<const Event> pass(std::span<const Event> events);

  // One event: appended to `out` if it passes, after the last private access of a granule that
  // becomes shared by it.
  void pass_one(const Event& event, EventBuffer& out);
  void pass_counted(const Event& event, EventBuffer& out);  // the same for one that was counted

  // An access in the form that the shadow keeps, but for its address and its thread.
  static std::uint64_t pack(const Event& event);

  // Address bits of which none is set when an access of this size lies within one granule of the
  // memory that the shadow covers; all of them for a size that never does.
  static Address unusual_bits(std::uint32_t size) {
    if (!std::has_single_bit(size) || size > kGranuleMask + 1) return ~Address{0};
    return ~((Address{1} << Shadow::kAddressBits) - 1) | (size - 1);
  }

  // The common case of an access without unusual bits: kUnknown leaves everything to the above.
  Look look(Address address, std::uint64_t packed, Owner owner) {
    Shadow::Chunk& chunk = shadow_.chunk(address);
    const std::size_t place = Shadow::place(address);
    std::uint8_t& state = chunk.states[place];
    if (state == kShared) return Look::kShared;
    if (state != owner.state && (state != kUntouched || owner.state == kSomebody)) {
      return Look::kUnknown;
    }
    state = owner.state;
    chunk.words[place] = packed | owner.bits | (address & kGranuleMask) << kOffsetShift;
    return Look::kPrivate;
  }
  static Owner owner(ThreadId thread) {
    return {static_cast<std::uint64_t>(thread) << kThreadShift & kThreadBits,
            thread < kSomebody - 1 ? static_cast<std::uint8_t>(thread + 1) : kSomebody};
  }
  void count(std::uint64_t accesses) { accesses_ += accesses; }

  std::uint64_t accesses() const { return accesses_; }

 private:
  // The state of a granule: nobody has touched it, thread number state - 1 has it, one of the many
  // threads without a state of their own has it (its word says which), several have touched it.
  static constexpr std::uint8_t kUntouched = 0;
  static constexpr std::uint8_t kSomebody = 254;
  static constexpr std::uint8_t kShared = 255;

  // The shadow word of a private granule: its last access.
  //   62..60 memory order   59..58 kind   57..55 size - 1   54..52 offset   51..32 thread
  //   31..0 site
  static constexpr unsigned kOffsetShift = 52;
  static constexpr unsigned kThreadShift = 32;
  static constexpr std::uint64_t kThreadBits = std::uint64_t{0xfffff} << kThreadShift;
  static constexpr Address kGranuleMask = 7;

  static Event unpack(std::uint64_t word, Address granule);
  bool access(const Event& event, EventBuffer& out);
  bool touch(Address address, std::uint64_t packed, ThreadId thread, EventBuffer& out);

  Shadow shadow_;
  EventBuffer passed_;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
