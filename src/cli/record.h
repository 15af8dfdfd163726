#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kRecordVerb;
extern const Verb kCollectVerb;

}  // namespace heddle::cli
