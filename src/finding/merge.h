// What looks like the same bug is one finding.
//
// Several detectors that see the same bug make one finding with more evidence.
//
// Detectors describe a bug by the accesses they need: a race is a pair, an atomicity violation a
// triple, inconsistent locking a variable and the access that emptied its lock set. Two findings
// are the same bug if they are about the same memory and the marked places of one are all among the
// marked places of the other. The one with more marked places stays, since it tells the longer
// story (among equals, the higher rank); it takes over the names of the other's detectors, the
// higher rank and the stronger label.
//
// And one detector that finds the same thing at the same places several times, because the compiler
// made several accesses of one statement (the copy of an object), has found it once, with all of
// the variables.
//
// This is for the eye, and comes last: suppressions and baselines are about what single detectors
// said, and must not depend on which detectors ran together.
#pragma once

#include "finding/finding.h"

#include <vector>

namespace heddle {

// Highest rank first; findings of equal rank keep their order.
std::vector<Finding> merge_findings(std::vector<Finding> findings);

}  // namespace heddle
