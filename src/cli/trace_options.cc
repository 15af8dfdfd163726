#include "cli/trace_input.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

void add_trace(CLI::App& app, TraceInput& input) {
  app.add_option("TRACE", input.path,
                 "the trace: binary, text notation or STD, told apart by content")
      ->required()
      ->type_name("FILE");
  app.add_flag("--salvage", input.salvage,
               "of a damaged trace, take everything before the damage instead of nothing");
}

}  // namespace heddle::cli
