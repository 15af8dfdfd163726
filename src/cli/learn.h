#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kLearnVerb;

}  // namespace heddle::cli
