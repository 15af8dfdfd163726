// The verbs that read and convert traces, and those that describe the command itself.
#pragma once

#include "cli/verb.h"

namespace heddle::cli {

extern const Verb kShowVerb;
extern const Verb kStatsVerb;
extern const Verb kImportVerb;
extern const Verb kExportVerb;
extern const Verb kCompletionVerb;
extern const Verb kManVerb;

}  // namespace heddle::cli
