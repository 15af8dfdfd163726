// heddle import: a trace in another format becomes a binary one.
#include "cli/convert.h"
#include "cli/messages.h"
#include "cli/trace_verbs.h"

#include <filesystem>
#include <memory>

namespace heddle::cli {
namespace {

struct Options {
  TraceInput trace;
  std::string output;
};

int run(const Options& options) {
  std::string output = options.output;
  if (output.empty()) {
    output = std::filesystem::path(options.trace.path).replace_extension(".heddle").string();
  }
  const Status done = convert_to_binary(options.trace, output);
  return done.ok() ? static_cast<int>(kNothingNew) : fail(done.error());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_trace(app, options->trace);
  app.add_option("-o,--output", options->output,
                 "the binary trace (default: TRACE with the ending .heddle)")
      ->type_name("FILE");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kImportVerb = {
    .name = "import",
    .summary = "Turns a trace in text or STD into a binary one",
    .description =
        "Reads a trace in any format and writes it in Heddle's binary format, which is smaller and "
        "many times faster to read. A line that does not parse is an error with its number, and "
        "then nothing is written.",
    .example = "heddle import account.std -o account.heddle",
    .declare = declare,
};

}  // namespace heddle::cli
