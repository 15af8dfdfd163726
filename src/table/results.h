// What was measured, as JSON: between the processes that measure and the one that prints, and for
// whoever wants the numbers.
#pragma once

#include "base/result.h"
#include "table/measure.h"

#include <map>
#include <string>

namespace heddle::table {

using Results = std::map<std::string, Measured>;  // by program

std::string print_json(const Budget& budget, const Results& results);
Result<Results> read_results(const std::string& path);

}  // namespace heddle::table
