#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kLogVerb;

}  // namespace heddle::cli
