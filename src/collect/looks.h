// What the filter of shared accesses makes of a shape: which granules to look at, and how.
//
// Within an execution nobody else comes between, so that of several accesses to the same bytes one
// *look* at the granule decides, and only the last one is worth remembering. Looks at neighbours
// (the fields of one object, say) are one *window*: the states of up to eight granules are loaded
// and compared at once.
#pragma once

#include "collect/shadow.h"
#include "collect/units.h"
#include "trace/execution.h"

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

namespace heddle::collect {

// The last access of a private granule, as its shadow word:
//   63..61 offset   60..58 memory order   57..56 kind   55..53 size - 1   51..32 thread   31..0
//   site
struct LastAccess {
  static constexpr unsigned kThreadShift = 32;
  static constexpr std::uint64_t kThreadBits = std::uint64_t{0xfffff} << kThreadShift;

  static std::uint64_t pack(const Event& event, std::uint64_t size) {
    return static_cast<std::uint64_t>(event.order) << 58 |
           static_cast<std::uint64_t>(event.kind) << 56 | (size - 1) << 53 | event.site;
  }
  static std::uint64_t of_thread(ThreadId thread) {
    return static_cast<std::uint64_t>(thread) << kThreadShift & kThreadBits;
  }
  static std::uint64_t at(Address address) { return address << 61; }
  static std::uint64_t of_more_bytes(std::uint64_t more) { return more << 53; }
  static Event unpack(std::uint64_t word, Address granule);
};

// Bytes that some items of a segment access.
struct Look {
  Address offset{};          // added to the word …
  std::uint16_t base{};      // … with this number
  std::uint16_t size{};      // 0: more than fits
  std::uint32_t items{};     // who accesses them, a bit each
  std::uint64_t unlikely{};  // bits that no address has for which a look at one granule is enough
  std::uint64_t last{};      // the last of these accesses, packed
};

// The granules of some looks with the same base.
struct Window {
  Address offset{};      // of its begin, added to the word …
  std::uint16_t base{};  // … with this number
  std::uint16_t
      look_count{};       // 0: if not all of it is shared, the looks have to be judged one by one
  std::uint32_t items{};  // all that access something in it
  std::uint64_t unlikely{};  // bits that no address of a begin has for which the states say it all
  std::uint64_t mask{};      // which of the eight states it is about
  const Look* looks{};       // the first
};

// What an item accesses whose segment has some sizes that are known only when it runs.
struct Range {
  Address offset{};           // added to the word …
  std::uint16_t base{};       // … with this number
  std::uint16_t size_word{};  // has the size, plus one; 0: it is known
  std::uint32_t size{};
  std::uint64_t last{};  // the access, packed, as if it were of one byte

  // Of segments that were believed.
  std::uint64_t size_in(const std::uint64_t* record) const {
    return size_word != 0 ? record[size_word] - 1 : std::uint64_t{size};
  }
};

// What an item of a loop touches from round to round, or several that touch the same.
struct Row {
  Address offset{};      // of the first round, added to the word …
  std::uint32_t base{};  // … with this number
  std::uint32_t size{};  // of an access
  LoopStep step;
  bool forward{};        // it gets on by a few bytes every round, and leaves out no granule
  bool in_last_round{};  // one of them happens in the last round, too …
  bool alike{};          // … and so do the others, or none does
  std::uint64_t last{};  // the last of these accesses in a round, packed
};

// What some items of a loop that gathers touch in every round.
struct Lane {
  std::uint32_t item{};         // one of them
  std::uint16_t base{};         // the word that is added to its address; every round has …
  std::uint16_t round_words{};  // … another one, so far behind; 0: it is in the address already
  bool in_last_round{};         // they happen in the last round, too
  std::uint8_t size{};          // 0: one that a look at one granule is not enough for
  std::uint32_t items{};        // a bit each
  std::uint64_t unlikely{};     // bits that no address has for which such a look is enough
  std::uint64_t last{};         // the last of them in a round, packed
};

class Stretch;
struct Form;
struct Call;

// Judges the record and those that follow, as long as it knows how to; returns the first one that
// it does not. `to` is where the next execution that passes is put down (stretch.h).
using Judge = const std::uint64_t* (*)(const std::uint64_t* record, Execution* to, const Form& form,
                                       Stretch& in, Shadow::View shadow);

// A slot or a call, as it is judged.
struct alignas(64) Form {
  enum class Kind : std::uint8_t {
    kOther,
    kNothing,  // that could pass
    kEnter,
    kLeave,
    kLoop,
    kGathering,  // a loop
    kManyItems,  // a segment with more than an execution has bits for
    kRanges,     // a segment with some sizes that are known only when it runs
    kSegment     // or a call, or a joined record
  };

  Judge judge{};
  const Look* looks{};
  union {
    const Window* windows{};
    const Lane* lanes;    // of a loop that gathers; as many as windows
    const Range* ranges;  // as many as items
  };
  ShapeId shape{};
  union {
    std::uint32_t all{};        // a bit for each item
    std::uint32_t round_items;  // of a loop: items of a round …
  };
  std::uint16_t look_count{};
  std::uint16_t window_count{};
  std::uint8_t words{};  // behind the header
  std::uint8_t items{};
  Kind kind{};
  bool has_frame{};  // an enter whose last word is its frame
  union {
    FunctionId function{};  // of an enter or a leave
    std::uint32_t always;   // … and of the last one
  };
  std::uint32_t count{};  // of rows
  const Row* rows{};      // of a loop
  const Call* call{};     // of an enter; nullptr: its function has more than one segment
};

static_assert(sizeof(Form) == 64);

// Of a function that has but one segment: what follows its enter, and how all of it is judged.
struct Call {
  const CompiledCall* is{};
  Form form;
};

// The forms of all units. The looks of one form are in the order of their last accesses: where
// several meet in one granule, the last of all is remembered.
class Forms {
 public:
  struct OfUnit {
    explicit OfUnit(const Unit& of) : unit(of) {}
    const Unit& unit;
    std::vector<Form> slots;
    std::pmr::monotonic_buffer_resource memory;  // what the forms point to
  };

  const OfUnit& of(const Unit& unit, std::span<const RecordShape* const> shapes);

 private:
  std::vector<std::unique_ptr<const OfUnit>> units_;  // by their numbers
};

}  // namespace heddle::collect
