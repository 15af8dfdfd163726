// Patterns: the shapes of executions (trace/execution.h), as AVIO wants them.
//
// Within the execution of a segment nobody else comes between. So of several accesses to the same
// bytes, while they stay with the thread that has them, only the last one counts, and the last
// write: such accesses are one *touch* of the pattern. Where something passes from one thread to
// another, the accesses are taken one by one.
//
// All accesses of an execution come from one place, so their spots are numbered in a row, which is
// found once for each place that the segment was executed from.
#pragma once

#include "detect/avio/spots.h"
#include "trace/execution.h"

#include <cstdint>
#include <vector>

namespace heddle::avio {

struct PatternTouch {
  Address offset{};      // added to the word …
  std::uint16_t base{};  // … with this number
  std::uint16_t size{};
  std::uint16_t last{};   // item
  std::uint16_t write{};  // the last item that writes, plus one; 0 = none
};

struct Pattern {
  bool known{};
  bool plain{};  // no loop, and all accesses are of 4 or 8 bytes
  std::uint32_t items{};
  std::vector<PatternTouch> touches;  // by their last items
  // The row of spots that was used last.
  Actor actor{};
  ContextId context{};
  SpotId row{};  // 0 = none
};

class Patterns {
 public:
  Pattern& of(ShapeId id, const RecordShape& shape) {
    if (id >= patterns_.size()) patterns_.resize(id + std::size_t{1});
    Pattern& pattern = patterns_[id];
    if (!pattern.known) compile(shape, pattern);
    return pattern;
  }

  // Spots were forgotten.
  void forget_rows() {
    for (Pattern& pattern : patterns_) pattern.row = 0;
  }

 private:
  static void compile(const RecordShape& shape, Pattern& pattern);

  std::vector<Pattern> patterns_;  // by ShapeId
};

}  // namespace heddle::avio
