#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kCheckVerb;

}  // namespace heddle::cli
