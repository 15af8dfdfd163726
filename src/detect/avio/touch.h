// What AVIO speaks of: one access as the shadow memory keeps it (Touch), the four ways in which a
// pair of accesses can be split (SplitCase), and the evidence (Triple).
#pragma once

#include "trace/event.h"

#include <cstdint>
#include <string_view>

namespace heddle::avio {

// Stands for a call stack and a set of held locks; given out by avio/context.h. 0 = nothing known.
using ContextId = std::uint32_t;

// A thread as the shadow knows it: dense, and new each time a thread id begins again.
using Actor = std::uint32_t;

// One access in 16 bytes. `bits`, from the top: actor (20), form (2), kind (2), ordinal (40). All
// zero means no access. The form tells a State of the shadow apart (avio/shadow.h) and is 0 here.
struct Touch {
  static constexpr unsigned kOrdinalBits = 40;
  static constexpr unsigned kActorBits = 20;
  static constexpr std::uint64_t kMaxOrdinal = (std::uint64_t{1} << kOrdinalBits) - 1;
  static constexpr Actor kMaxActor = (Actor{1} << kActorBits) - 1;
  static constexpr std::uint64_t kRead = 1;
  static constexpr std::uint64_t kWrite = 2;  // a read-modify-write has both

  std::uint64_t bits = 0;
  SiteId site = 0;
  ContextId context = 0;

  static Touch make(Actor actor, EventKind kind, std::uint64_t ordinal, SiteId site,
                    ContextId context) {
    static_assert(static_cast<unsigned>(EventKind::kRead) == kRead &&
                  static_cast<unsigned>(EventKind::kWrite) == kWrite &&
                  static_cast<unsigned>(EventKind::kRmw) == (kRead | kWrite));
    const auto what = static_cast<std::uint64_t>(kind);
    return {(std::uint64_t{actor} << 44) | (what << kOrdinalBits) | ordinal, site, context};
  }

  explicit operator bool() const { return bits != 0; }
  std::uint64_t ordinal() const { return bits & kMaxOrdinal; }
  Actor actor() const { return static_cast<Actor>(bits >> 44); }
  bool reads() const { return ((bits >> kOrdinalBits) & kRead) != 0; }
  bool writes() const { return ((bits >> kOrdinalBits) & kWrite) != 0; }
  EventKind kind() const {
    return !writes() ? EventKind::kRead : !reads() ? EventKind::kWrite : EventKind::kRmw;
  }
  // Actor and form in one number: equal means an exclusive state of the same thread.
  std::uint64_t owner() const { return bits >> 42; }
};
static_assert(sizeof(Touch) == 16);

// The unserializable cases, numbered as in the paper's table 1.
enum class SplitCase : std::uint8_t {
  kReadWriteRead = 2,
  kWriteWriteRead = 3,
  kWriteReadWrite = 5,
  kReadWriteWrite = 6,
};

// "read – write – read"
constexpr std::string_view summary(SplitCase split) {
  switch (split) {
    case SplitCase::kReadWriteRead:
      return "read – write – read";
    case SplitCase::kWriteWriteRead:
      return "write – write – read";
    case SplitCase::kWriteReadWrite:
      return "write – read – write";
    case SplitCase::kReadWriteWrite:
      return "read – write – write";
  }
  return {};
}

constexpr std::string_view in_words(SplitCase split) {
  switch (split) {
    case SplitCase::kReadWriteRead:
      return "read twice, written in between";
    case SplitCase::kWriteWriteRead:
      return "written and read back, overwritten in between";
    case SplitCase::kWriteReadWrite:
      return "written twice, the intermediate value read in between";
    case SplitCase::kReadWriteWrite:
      return "read and then written, overwritten in between";
  }
  return {};
}

// P and I are consecutive accesses of one thread to the bytes of `mask` at `address`; R, of another
// thread, came between them.
struct Triple {
  SplitCase split{};
  Touch p, r, i;
  Address address = 0;    // of the shadow cell
  std::uint8_t mask = 0;  // which eighths of the cell
  Address i_address = 0;  // what I accesses as a whole
  std::uint32_t i_size = 0;
  bool narrow = false;  // P or R accesses no more than 8 bytes, so no more than two cells
};

}  // namespace heddle::avio
