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
  std::uint32_t looks{};     // number of the first
};

// A slot or a call, as it is judged.
struct Form {
  // What to do with it. The commonest segments have a code for each number of looks, or of windows
  // if these are fewer.
  enum Code : std::uint8_t {
    kOther,
    kNothing,
    kEnter,
    kLeave,
    kLoop,
    kManyItems,  // more than an execution has bits for
    kRanges,     // some with sizes that are known only when it runs
    kJoined,     // `looks` is the number of its first part in OfUnit::parts, look_count how many
    kSegment,
    kOneLook,
    kTwoLooks,
    kThreeLooks,
    kFourLooks,
    kOneWindow,
    kTwoWindows,
    kThreeWindows,
    kFourWindows,
    kFiveWindows,
    kSixWindows
  };

  std::uint32_t looks{};    // number of the first
  std::uint32_t windows{};  // number of the first
  ShapeId shape{};
  std::uint32_t all{};  // a bit for each item
  Code code{};
  std::uint8_t words{};  // behind the header
  std::uint16_t look_count{};
  std::uint16_t window_count{};
  std::uint8_t items{};
};

// The forms of all units, and their looks. Those of one form are in the order of their last
// accesses: where several meet in one granule, the last of all is remembered.
class Forms {
 public:
  // Of a joined record.
  struct Part;
  struct OfUnit {
    const Unit* unit;
    std::vector<Form> slots;
    std::vector<Form> calls;
    std::vector<Part> parts;
  };

  const OfUnit& of(const Unit& unit, std::span<const RecordShape* const> shapes);
  const Look* looks() const { return looks_.data(); }
  const Window* windows() const { return windows_.data(); }

 private:
  Form compile(ShapeId shape, const RecordShape& of);
  Form join(const CompiledSlot& slot, std::span<const RecordShape* const> shapes, OfUnit& unit);
  void add_looks(Form& form, const RecordShape& shape);
  void add_windows(Form& form);

  std::vector<std::unique_ptr<const OfUnit>> units_;  // by their numbers
  std::vector<Look> looks_;
  std::vector<Window> windows_;
};

struct Forms::Part {
  Form form;
  SiteId site{};
  std::int32_t shift{};  // from the record to what its words are counted from
};

}  // namespace heddle::collect
