// Others: what is known of the threads that came to a location before the last two of them did.
//
// One or two threads more are the rule, hundreds are possible: one stamp alone, a block of 1, 2 or
// 4 places, which are looked through, or a table by thread. Blocks grow; places of threads that
// ended are used again.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heddle::avio {

// How a thread left a location. All zero is a free place.
struct Left {
  Stamp last{};    // its last access
  Stamp reader{};  // the access after that, if `last` was a write and this is a remote read

  bool operator==(const Left&) const = default;
};

// The address of a block, which is a multiple of 16, and its form below that; or the last access of
// the only one, whom nobody's read followed. 0 = none.
using OthersId = std::uint64_t;

class Others {
 public:
  explicit Others(const Spots& spots) : spots_(spots) {}

  void begin(Actor actor);  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { ended_[actor] = 1; }
  bool ended(Actor actor) const { return ended_[actor] != 0; }

  // Puts `leaving` there, unless it is none or of a thread that has ended, and takes out what is
  // known of the thread that comes.
  Left swap(OthersId& id, const Left& leaving, Actor comes);
  // How often that went to a table, since this was asked before.
  std::size_t looked_up() { return std::exchange(looked_up_, 0); }
  // That is about to happen.
  [[gnu::always_inline]] void prefetch(OthersId id, Actor leaves, Actor comes) const {
    if (is_alone(id)) return;
    const Left* const places = block(id);
    if (!is_table(id)) return __builtin_prefetch(places, 1);
    const std::uint64_t mask = size(id) - 1;
    __builtin_prefetch(places + (first_place(leaves) & mask), 1);
    __builtin_prefetch(places + (first_place(comes) & mask), 1);
  }
  OthersId copy(OthersId id);
  void drop(OthersId id);

  void forget_everything();
  std::size_t bytes() const { return arena_.bytes(); }

 private:
  // Forms: a block of 2^form places; a stamp; or a table, whose first place has its size and its
  // use. The form of a table that is not very large has its size, too, so that nobody has to look
  // there.
  static constexpr OthersId kForm = 15;
  static constexpr OthersId kLargestBlock = 2;
  static constexpr OthersId kLargeTable = 3;
  static constexpr OthersId kAlone = 4;
  static constexpr std::uint64_t kFirstTable = 16;

  // Threads that began one after the other tend to come one after the other: they share a cache
  // line.
  static constexpr unsigned kLineBits = 2;
  static constexpr Actor kLine = 1u << kLineBits;  // places

  static bool is_alone(OthersId id) { return (id & kForm) == kAlone; }
  static Left alone(OthersId id) { return {.last = plain(id)}; }
  static Left* block(OthersId id) { return reinterpret_cast<Left*>(id & ~kForm); }
  static bool is_table(OthersId id) { return (id & kForm) == kLargeTable || (id & kForm) > kAlone; }
  static OthersId table_id(const Left* table, std::uint64_t size) {
    const auto form = static_cast<OthersId>(std::bit_width(size));
    static_assert(std::bit_width(kFirstTable) > kAlone);
    return reinterpret_cast<OthersId>(table) | (form <= kForm ? form : kLargeTable);
  }
  static std::uint64_t size(OthersId id) {
    const OthersId form = id & kForm;
    if (form == kLargeTable) return block(id)->last;
    return std::uint64_t{1} << (form > kAlone ? form - 1 : form);
  }
  static std::uint64_t first_place(Actor actor) {
    return (actor >> kLineBits) * 0x9e3779b1u << kLineBits | (actor & (kLine - 1));
  }
  Actor actor(const Left& left) const { return spots_[spot_of(left.last)].actor; }
  bool is_free(const Left& left) const { return left.last == 0 || ended(actor(left)); }
  Left* place_in(Left* table, std::uint64_t size, Actor actor) const;
  Left take(OthersId& id, Actor actor);
  OthersId make(const Left& left);
  void put(OthersId& id, const Left& left);
  void put_into_table(OthersId& id, const Left& left);
  void grow(OthersId& id);
  OthersId make_table(OthersId from, std::uint64_t size);

  const Spots& spots_;
  Arena arena_;
  std::vector<std::uint8_t> ended_;  // by actor
  std::size_t looked_up_ = 0;
};

}  // namespace heddle::avio
