// Descriptors as text, for people and for tests: what the plugin wrote into an object file, a
// shared library or an executable about its functions (trace/catalog.h, "the flow level").
//
//   b0.0: r2 = read Account.balance [r0]; write Account.balance [r0] = r1 r2; branch r2
//   b1.0 after b0: r3 = phi b0: r1 | b2: r5; r4 = call f(r1, r3)
//   b1.1 after b0: return r4
//
// One line for each segment: block.segment, the blocks whose branches control it, then what it
// does. In brackets what an address is computed from, behind `=` what a value is.
#pragma once

#include "abi/layout.h"
#include "base/result.h"
#include "trace/catalog.h"

#include <string>
#include <vector>

namespace heddle {

struct UnitDescriptors {
  Catalog catalog;
  std::vector<SegmentLayout> layouts;  // by segment; empty where there are no accesses
  std::vector<LoopLayout> loops;       // those that exist plain, too
};

// All units of an ELF file.
Result<std::vector<UnitDescriptors>> read_descriptors(const std::string& path);

// One segment as a line, as above.
std::string segment_line(const Catalog& catalog, const Segment& segment);

// The lines of all segments of a function, in order.
std::vector<std::string> function_lines(const Catalog& catalog, FunctionId function);

}  // namespace heddle
