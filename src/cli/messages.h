// What a verb says when something is wrong, or worth a word: one line on standard error.
#pragma once

#include "base/result.h"

#include <string>

namespace heddle::cli {

// Gives the exit status for it.
int fail(const Error& error);
void warn(const std::string& message);
void tell(const std::string& message);

}  // namespace heddle::cli
