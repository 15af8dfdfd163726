// The papers' tables with our numbers, as Markdown. Dumb: whatever is decided was decided before.
#pragma once

#include "table/measure.h"
#include "table/programs.h"
#include "table/results.h"

#include <string>
#include <vector>

namespace heddle::table {

struct Report {
  std::string markdown;
  std::string svg;  // the learning curve; the page refers to it as learning.svg
};

Report write_report(const std::vector<Program>& programs, const Results& results,
                    const Budget& budget);

}  // namespace heddle::table
