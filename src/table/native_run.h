// A program run as it is, without Heddle, unheard: what natively happens, for comparison.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace heddle::table {

// The wait status of `command`, whose output goes nowhere. It is killed after `timeout` seconds,
// and leaves no core file.
Result<int> native_run(const std::vector<std::string>& command, unsigned timeout);

}  // namespace heddle::table
