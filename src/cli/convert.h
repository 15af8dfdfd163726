// Traces from one format to another.
#pragma once

#include "base/result.h"
#include "cli/trace_input.h"

#include <string>

namespace heddle::cli {

// Writes the trace as a binary file, which is removed again when something fails.
Status convert_to_binary(const TraceInput& input, const std::string& output);

// Writes the text notation; an empty `output` is standard output.
Status convert_to_text(const TraceInput& input, const std::string& output);

// Writes STD. What STD cannot express is left out with a warning or, if `strict`, is an error
// before anything is written.
Status convert_to_std(const TraceInput& input, const std::string& output, bool strict);

}  // namespace heddle::cli
