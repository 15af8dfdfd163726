// Patterns: the shapes of executions (trace/execution.h), as AVIO wants them.
//
// Within the execution of a segment, or a round of a loop, nobody else comes between. So several
// accesses to the same bytes are one *touch* of the pattern, and its first access, its last one and
// its last write are all that counts of it.
#pragma once

#include "detect/avio/pages.h"
#include "detect/avio/stamp.h"
#include "trace/execution.h"

#include <cstdint>
#include <vector>

namespace heddle::avio {

struct PatternTouch {
  Address offset{};      // added to the word …
  std::uint32_t base{};  // … with this number
  std::uint32_t size{};
  std::uint32_t first{}, last{};  // items
  std::uint32_t write{};          // the last item that writes, plus one; 0 = none

  // What the Shadow needs for the way of nearly all accesses: to a location of the same size as the
  // access, which stays with the thread.
  std::uint32_t flags_end{};  // flags that a location must be below: what else there is to do …
  Stamp flags{};              // … when they are compared with these
  Stamp now{};                // the last access, less the stamp of the first item
  Address unlikely{};         // bits that no address of such a location has
  Address in_chunk{}, second{};
  std::size_t array{};
  std::uint32_t shift{};

  // `start` is the first access of all.
  Series series(Stamp start) const {
    return {.first = start + first * kNextInRow,
            .last = (start + last * kNextInRow) | (write == last + 1 ? kWrote : 0),
            .write = write != 0 ? start + (write - 1) * kNextInRow : 0};
  }
  std::size_t place(Address address) const {
    return ((address & in_chunk) << shift) + ((address & second) << (kChunkBits - 2)) + array;
  }
};

struct Pattern {
  bool known{};
  std::uint32_t items{};
  std::vector<PatternTouch> touches;  // by their first items
};

class Patterns {
 public:
  Pattern& of(ShapeId id, const RecordShape& shape) {
    if (id >= patterns_.size()) patterns_.resize(id + std::size_t{1});
    Pattern& pattern = patterns_[id];
    if (!pattern.known) compile(shape, pattern);
    return pattern;
  }

 private:
  static void compile(const RecordShape& shape, Pattern& pattern);

  std::vector<Pattern> patterns_;  // by ShapeId
};

}  // namespace heddle::avio
