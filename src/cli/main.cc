// The command `heddle`: a table of verbs.
#include "base/no_memory.h"
#include "cli/command.h"
#include "cli/control.h"
#include "cli/descriptors.h"
#include "cli/learn.h"
#include "cli/record.h"
#include "cli/run.h"
#include "cli/trace_verbs.h"
#include "cli/verb.h"
#include "cli/verb_check.h"
#include "cli/verb_log.h"
#include "cli/verb_units.h"

#include <new>
#include <vector>

namespace heddle::cli {

std::span<const Verb> verbs() {
  static const std::vector<Verb> table = {
      kRecordVerb,       // a program's run becomes a trace
      kRunVerb,          // detectors while a program runs
      kReplayVerb,       // a recorded schedule again
      kTryVerb,          // many schedules
      kLearnVerb,        // invariants from passing runs
      kCheckVerb,        // detectors over a trace
      kUnitsVerb,        // the computational unit of a statement
      kLogVerb,          // reads that saw another thread's write
      kShowVerb,         // the events of a trace
      kStatsVerb,        // what is in a trace, in numbers
      kImportVerb,       // text or STD to binary
      kExportVerb,       // to text, STD or binary
      kDescriptorsVerb,  // what the compilers wrote into a program
      kCompletionVerb,   // for the shell
      kCollectVerb,      // for programs started without heddle
      kManVerb,          // for the build
  };
  return table;
}

}  // namespace heddle::cli

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 throws at mistakes in our tables of options only
int main(int argc, char** argv) {
  std::set_new_handler(heddle::no_memory);
  return heddle::cli::run_command(argc, argv);
}
