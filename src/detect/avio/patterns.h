// Patterns: the shapes of executions (trace/execution.h), as AVIO wants them.
//
// Within the execution of a segment, or a round of a loop, nobody else comes between. So several
// accesses to the same bytes are one *touch* of the pattern, and its first access, its last one and
// its last write are all that counts of it. An access of a segment to a few whole cells, a small
// object that is copied, say, is a touch of each of them.
#pragma once

#include "detect/avio/pages.h"
#include "detect/avio/stamp.h"
#include "trace/execution.h"

#include <cstdint>
#include <vector>

namespace heddle::avio {

struct PatternTouch {
  // What the Shadow needs for the way of nearly all accesses: to a location of the same size as the
  // access, which stays with the thread.
  Address offset{};          // added to the word …
  std::uint32_t base{};      // … with this number
  std::uint8_t flags{};      // what a location's flags are compared with …
  std::uint8_t flags_end{};  // … and when there is more to do than to replace its stamp
  Address unlikely{};        // bits that no address of such a location has
  Stamp now{};               // the last access, less the stamp of the first item

  std::uint32_t size{};
  std::uint32_t size_word{};      // has the size, plus one, if it is not 0
  std::uint32_t part{};           // bytes of the first item that come before …
  std::uint32_t whole{};          // … and all of them
  std::uint32_t first{}, last{};  // items, as they are numbered in the row
  std::uint32_t write{};          // the last one that writes, plus one; 0 = none

  // `start` is the first access of all.
  Series series(Stamp start) const {
    return {.first = start + first * kNextInRow,
            .last = (start + last * kNextInRow) | (write == last + 1 ? kWrote : 0),
            .write = write != 0 ? start + (write - 1) * kNextInRow : 0};
  }
  std::size_t offset_in_chunk(Address address) const {
    if (size == 8) return offset_of_cell(address);
    return size == 4 ? offset_of_half(address) : offset_of_byte(address);
  }
};

struct Pattern {
  static constexpr std::size_t kMostTouches = 64;
  static constexpr std::uint32_t kMostCells = 8;  // of an access that is several touches

  bool known{};
  // Shadow::find() and execute() take it: a segment, a call, a joined record, or a round of a loop
  // that gathers, of few touches. Of such a round, item i has word 1 + i.
  bool simple{};
  RecordShape::Kind kind{};
  // What is numbered in a row: the items, and where a joined record enters and leaves a call.
  std::uint32_t items{};
  std::vector<PatternTouch> touches;  // by their first items

  // Of a loop: its touches that move, and those that each round tells, with the numbers of the
  // round's own words. `by_lanes`: each of them is one location in every round.
  bool by_lanes{};
  std::vector<PatternTouch> moving;
  std::vector<PatternTouch> gathered;

  // The spots of the execution before: of the first item, for that thread in that context; of a
  // call, outside of it, and from that site.
  SpotId row{};
  Actor actor{};
  ContextId context{};
  SiteId site{};

  bool has_row(Actor by, ContextId at) const { return row != 0 && actor == by && context == at; }
};

class Patterns {
 public:
  // `simple`: whether any pattern may be.
  explicit Patterns(bool simple) : simple_(simple) {}

  // For so many ids.
  void make_room(std::size_t count) {
    if (count > patterns_.size()) patterns_.resize(count);
  }
  // There is room for it.
  Pattern& in_room(ShapeId id, const RecordShape& shape) {
    Pattern& pattern = patterns_[id];
    if (!pattern.known) [[unlikely]]
      compile(shape, pattern);
    return pattern;
  }
  Pattern& of(ShapeId id, const RecordShape& shape) {
    make_room(id + std::size_t{1});
    return in_room(id, shape);
  }
  Pattern& known(ShapeId id) { return patterns_[id]; }
  const Pattern& known(ShapeId id) const { return patterns_[id]; }
  void forget_rows() {
    for (Pattern& pattern : patterns_) pattern.row = 0;
  }

 private:
  void compile(const RecordShape& shape, Pattern& pattern) const;

  const bool simple_;
  std::vector<Pattern> patterns_;  // by ShapeId
};

}  // namespace heddle::avio
