// The words of the text notation (trace/text.h), in the tables that both the parser and the printer
// read, so that what one writes the other understands.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <array>
#include <optional>
#include <string_view>

namespace heddle::text {

// Of an access whose place is an address. One that names a variable touches all of it, or what is
// left of it from the offset on.
inline constexpr std::uint32_t kDefaultAccessSize = 8;

// What follows an event's verb.
enum class Shape : std::uint8_t {
  kAccess,         // place[:size] [= value]; the verb takes a memory order
  kFence,          // nothing; the verb takes a memory order
  kLock,           // place [outcome]; the verb takes a mode
  kObject,         // place
  kObjectOutcome,  // place [outcome]
  kWait,           // condition mutex [outcome]
  kThread,         // tN
  kNothing,
  kBlock,     // place[:size], the size is the event's value
  kEnter,     // function [on place]
  kLeave,     // function
  kUnit,      // [name]
  kSegment,   // number
  kBranch,    // taken | not
  kIo,        // place[:size]
  kMark,      // text
  kOutcome,   // exit | signal | … [status] [text]
  kAnything,  // a kind this version does not know: all fields in braces
};

// Fields of an Event that a shape spells out; the others are written in braces when not zero.
enum Field : std::uint8_t {
  kOrderField = 1,
  kModeField = 2,
  kOutcomeField = 4,
  kSizeField = 8,
  kAddressField = 16,
  kValueField = 32,
  kHasValueField = 64,
};

constexpr std::uint8_t fields_of(Shape shape) {
  switch (shape) {
    case Shape::kAccess:  // the value only when has_value
      return kOrderField | kSizeField | kAddressField | kHasValueField;
    case Shape::kFence:
      return kOrderField;
    case Shape::kLock:
      return kAddressField | kModeField | kOutcomeField;
    case Shape::kObject:
      return kAddressField;
    case Shape::kObjectOutcome:
      return kAddressField | kOutcomeField;
    case Shape::kWait:
      return kAddressField | kValueField | kOutcomeField;
    case Shape::kThread:
    case Shape::kLeave:
    case Shape::kUnit:
    case Shape::kSegment:
    case Shape::kBranch:
    case Shape::kMark:
      return kValueField;
    case Shape::kBlock:
    case Shape::kEnter:
      return kAddressField | kValueField;
    case Shape::kIo:
      return kAddressField | kSizeField;
    case Shape::kOutcome:
      return kAddressField | kValueField | kSizeField;
    case Shape::kNothing:
    case Shape::kAnything:
      return 0;
  }
  return 0;
}

struct KindWord {
  std::string_view word;
  EventKind kind;
  Shape shape;
};

// The first word of a kind is the one that is printed; the rest are read as well.
inline constexpr std::array kKindWords = {
    KindWord{"r", EventKind::kRead, Shape::kAccess},
    KindWord{"w", EventKind::kWrite, Shape::kAccess},
    KindWord{"rmw", EventKind::kRmw, Shape::kAccess},
    KindWord{"fence", EventKind::kFence, Shape::kFence},
    KindWord{"acq", EventKind::kAcquire, Shape::kLock},
    KindWord{"rel", EventKind::kRelease, Shape::kLock},
    KindWord{"wait", EventKind::kWait, Shape::kWait},
    KindWord{"signal", EventKind::kSignal, Shape::kObject},
    KindWord{"broadcast", EventKind::kBroadcast, Shape::kObject},
    KindWord{"sem.post", EventKind::kSemPost, Shape::kObject},
    KindWord{"sem.wait", EventKind::kSemWait, Shape::kObjectOutcome},
    KindWord{"barrier.arrive", EventKind::kBarrierArrive, Shape::kObject},
    KindWord{"barrier.leave", EventKind::kBarrierLeave, Shape::kObject},
    KindWord{"once.begin", EventKind::kOnceBegin, Shape::kObject},
    KindWord{"once.end", EventKind::kOnceEnd, Shape::kObject},
    KindWord{"once.pass", EventKind::kOncePass, Shape::kObject},
    KindWord{"order.release", EventKind::kOrderRelease, Shape::kObject},
    KindWord{"order.acquire", EventKind::kOrderAcquire, Shape::kObject},
    KindWord{"fork", EventKind::kFork, Shape::kThread},
    KindWord{"join", EventKind::kJoin, Shape::kThread},
    KindWord{"thread.begin", EventKind::kThreadBegin, Shape::kThread},
    KindWord{"thread.end", EventKind::kThreadEnd, Shape::kNothing},
    KindWord{"alloc", EventKind::kAlloc, Shape::kBlock},
    KindWord{"free", EventKind::kFree, Shape::kBlock},
    KindWord{"enter", EventKind::kEnter, Shape::kEnter},
    KindWord{"leave", EventKind::kLeave, Shape::kLeave},
    KindWord{"begin", EventKind::kUnitBegin, Shape::kUnit},
    KindWord{"end", EventKind::kUnitEnd, Shape::kUnit},
    KindWord{"segment", EventKind::kSegment, Shape::kSegment},
    KindWord{"branch", EventKind::kBranch, Shape::kBranch},
    KindWord{"io.read", EventKind::kIoRead, Shape::kIo},
    KindWord{"io.write", EventKind::kIoWrite, Shape::kIo},
    KindWord{"mark", EventKind::kMark, Shape::kMark},
    KindWord{"outcome", EventKind::kOutcome, Shape::kOutcome},
    KindWord{"read", EventKind::kRead, Shape::kAccess},
    KindWord{"write", EventKind::kWrite, Shape::kAccess},
    KindWord{"acquire", EventKind::kAcquire, Shape::kLock},
    KindWord{"release", EventKind::kRelease, Shape::kLock},
};

struct EnumWord {
  std::string_view word;
  std::uint32_t value;
};

inline constexpr std::array kOrderWords = {
    EnumWord{"plain", 0},   EnumWord{"relaxed", 1}, EnumWord{"consume", 2}, EnumWord{"acquire", 3},
    EnumWord{"release", 4}, EnumWord{"acq_rel", 5}, EnumWord{"seq_cst", 6}};
inline constexpr std::array kModeWords = {EnumWord{"exclusive", 0}, EnumWord{"shared", 1}};
inline constexpr std::array kOutcomeWords = {EnumWord{"ok", 0}, EnumWord{"failed", 1},
                                             EnumWord{"timedout", 2}};
inline constexpr std::array kRunEndWords = {EnumWord{"exit", 0},      EnumWord{"signal", 1},
                                            EnumWord{"assertion", 2}, EnumWord{"hang", 3},
                                            EnumWord{"deadlock", 4},  EnumWord{"lost", 5}};
inline constexpr std::array kMemberAccessWords = {EnumWord{"none", 0}, EnumWord{"public", 1},
                                                  EnumWord{"protected", 2}, EnumWord{"private", 3}};
inline constexpr std::array kSegmentEndWords = {EnumWord{"fall", 0}, EnumWord{"branch", 1},
                                                EnumWord{"call", 2}, EnumWord{"return", 3},
                                                EnumWord{"unwind", 4}};
inline constexpr std::array kFunctionFlagWords = {
    EnumWord{"method", Function::kMethod},
    EnumWord{"constructor", Function::kConstructor},
    EnumWord{"destructor", Function::kDestructor},
    EnumWord{"static", Function::kStatic},
    EnumWord{"standard", Function::kStandard},
    EnumWord{"catches_jumps", Function::kCatchesJumps}};
inline constexpr std::array kSiteFlagWords = {
    EnumWord{"volatile", Site::kVolatile}, EnumWord{"bit_field", Site::kBitField},
    EnumWord{"vector", Site::kVector},     EnumWord{"range", Site::kRange},
    EnumWord{"sync", Site::kSync},         EnumWord{"local_or_const", Site::kThreadLocalOrConst}};

template <typename Table>
constexpr std::optional<std::uint32_t> value_of(const Table& table, std::string_view word) {
  for (const EnumWord& entry : table) {
    if (entry.word == word) return entry.value;
  }
  return std::nullopt;
}

// Empty when the table has no such value.
template <typename Table>
constexpr std::string_view word_of(const Table& table, std::uint32_t value) {
  for (const EnumWord& entry : table) {
    if (entry.value == value) return entry.word;
  }
  return {};
}

// The entry that is printed for `kind`; nullptr for a kind this version does not know.
const KindWord* kind_word(EventKind kind);
// The entry for a word; nullptr if there is none.
const KindWord* kind_word(std::string_view word);

// A name that needs no quotes: an identifier, possibly with `.`, `[`, `]`, `~` and `::` inside.
constexpr bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
constexpr bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '[' || c == ']' || c == '~';
}
// Length of the bare name at the start of `text`, 0 if there is none.
constexpr std::size_t bare_name_length(std::string_view text) {
  if (text.empty() || !starts_name(text[0])) return 0;
  std::size_t n = 1;
  while (n < text.size()) {
    if (continues_name(text[n])) {
      ++n;
    } else if (n + 2 < text.size() && text[n] == ':' && text[n + 1] == ':' &&
               (starts_name(text[n + 2]) || text[n + 2] == '~')) {
      n += 3;
    } else {
      break;
    }
  }
  return n;
}
// A file name that needs no quotes after `@`.
constexpr bool in_bare_file(char c) {
  return starts_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '-' || c == '+' ||
         c == '~';
}

}  // namespace heddle::text
