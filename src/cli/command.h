// The command line: from argv to a verb's run, and from a mistake to one line that names it.
#pragma once

namespace heddle::cli {

// Parses, runs the verb, returns the exit status.
int run_command(int argc, char** argv);

}  // namespace heddle::cli
