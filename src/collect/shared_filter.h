// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// state is the thread that has it, and its shadow word holds the last access. When another thread
// comes, that last access is delivered, late, right before the one that made the granule shared;
// from then on every access is delivered.
//
// Everything else passes. A new block of memory starts without a past. What passes
// has ordinals of its own.
//
// An access costs a look at the state of its granule, and a store: of itself to where what passes
// waits, or of what is to be remembered of it. Of a stretch, calls in which
// nothing passes do not pass either.
#pragma once

#include "collect/event_buffer.h"
#include "collect/shadow.h"
#include "trace/stretch.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::collect {

class SharedFilter : public EventTaker {
 public:
  explicit SharedFilter(EventTaker& next) : next_(next) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  void on_stretch(const Stretch& stretch) override;

  std::uint64_t accesses() const { return accesses_; }  // that came, not that passed

 private:
  enum class Look { kPrivate, kShared, kUnknown };

  // A thread, as the words and the states name it.
  struct Owner {
    std::uint64_t bits;
    std::uint8_t state;
  };

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

  static Owner owner(ThreadId thread) {
    return {static_cast<std::uint64_t>(thread) << kThreadShift & kThreadBits,
            thread < kSomebody - 1 ? static_cast<std::uint8_t>(thread + 1) : kSomebody};
  }
  static std::uint64_t pack(EventKind kind, MemoryOrder order, SiteId site, std::uint64_t size) {
    return static_cast<std::uint64_t>(order) << 60 | static_cast<std::uint64_t>(kind) << 58 |
           (size - 1) << 55 | site;
  }
  static Event unpack(std::uint64_t word, Address granule);

  // The common case; kUnknown leaves everything to touch().
  Look look(const CompactEvent& access, Owner owner) {
    constexpr Address kBeyond = ~((Address{1} << Shadow::kAddressBits) - 1);
    if ((access.address & kBeyond) != 0) return Look::kUnknown;
    // In one granule: neither 0 nor beyond its end.
    if ((access.address & kGranuleMask) + (access.size() - 1u) > kGranuleMask)
      return Look::kUnknown;
    Shadow::Chunk& chunk = shadow_.chunk(access.address);
    const std::size_t place = Shadow::place(access.address);
    std::uint8_t& state = chunk.states[place];
    if (state == kShared) return Look::kShared;
    if (state != owner.state && (state != kUntouched || owner.state == kSomebody)) {
      return Look::kUnknown;
    }
    state = owner.state;
    chunk.words[place] = pack(access.what(), access.order(), access.site, access.size()) |
                         owner.bits | (access.address & kGranuleMask) << kOffsetShift;
    return Look::kPrivate;
  }

  bool touch(const Event& event);
  bool touch_granule(Address address, std::uint64_t packed, ThreadId thread);
  void hand_over();

  EventTaker& next_;
  Shadow shadow_;
  EventBuffer passed_;                 // not yet handed over
  std::vector<CompactEvent> compact_;  // what passes of a stretch
  EventOrdinal ordinal_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
