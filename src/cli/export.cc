// heddle export: a trace in another format.
#include "cli/convert.h"
#include "cli/messages.h"
#include "cli/trace_verbs.h"

#include <memory>

namespace heddle::cli {
namespace {

struct Options {
  TraceInput trace;
  std::string format = "text";
  std::string output;
  bool strict = false;
};

int run(const Options& options) {
  Status done = Done{};
  if (options.format == "std") {
    done = convert_to_std(options.trace, options.output, options.strict);
  } else if (options.format == "text") {
    done = convert_to_text(options.trace, options.output);
  } else if (options.output.empty()) {
    done = Error{"export --format binary: a binary trace needs a file; give -o FILE"};
  } else {
    done = convert_to_binary(options.trace, options.output);
  }
  return done.ok() ? static_cast<int>(kNothingNew) : fail(done.error());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_trace(app, options->trace);
  app.add_option("-f,--format", options->format,
                 "text: the text notation, which holds everything; std: the format of RAPID, which "
                 "knows r, w, acq, rel, fork, join, begin and end; binary")
      ->check(CLI::IsMember({"text", "std", "binary"}))
      ->capture_default_str();
  app.add_option("-o,--output", options->output, "the file to write (default: standard output)")
      ->type_name("FILE");
  app.add_flag("--strict", options->strict,
               "refuse if STD cannot express the whole trace, instead of warning");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kExportVerb = {
    .name = "export",
    .summary = "Writes a trace in another format",
    .description =
        "Writes a trace as text for people, as STD for other tools, or as a binary trace. STD "
        "cannot "
        "express everything: what had to be left out or weakened is counted in one warning.",
    .example =
        "heddle export run.heddle --format text | less\n"
        "heddle export run.heddle --format std -o run.std",
    .declare = declare,
};

}  // namespace heddle::cli
