// heddle run: record and check in one, without a file.
#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kRunVerb;

}  // namespace heddle::cli
