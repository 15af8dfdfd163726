// The quick version of the tables: few runs, fixed seeds, and a comparison with the verdicts that
// are kept in examples/expected.json. What `ctest` runs.
#pragma once

#include "base/result.h"
#include "table/measure.h"
#include "table/programs.h"

#include <string>
#include <vector>

namespace heddle::table {

// At most 25 passing runs of training; then the stored seeds, or three fixed ones where no run
// fails.
Result<Measured> quick_measure(const Place& place, const Program& program);

Verdicts verdicts_of(const Program& program, const Measured& measured);

// What does not agree, a line each.
std::vector<std::string> compare(const Program& program, const Verdicts& measured);

// Verdicts that need a reason and have none, a line each.
std::vector<std::string> unexplained(const Program& program);

}  // namespace heddle::table
