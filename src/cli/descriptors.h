#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kDescriptorsVerb;

}  // namespace heddle::cli
