// Verbs that run a program under control without recording it.
#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kReplayVerb;
extern const Verb kTryVerb;

}  // namespace heddle::cli
