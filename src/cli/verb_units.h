#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kUnitsVerb;

}  // namespace heddle::cli
