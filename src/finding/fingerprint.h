// A finding's identity across runs, rebuilds and edits: made of the names of functions and
// variables, the kinds of access and their roles; never of line numbers, addresses or thread ids.
#pragma once

#include "finding/finding.h"

#include <string>

namespace heddle {

std::string fingerprint(const Finding& finding);  // 16 hexadecimal digits

}  // namespace heddle
