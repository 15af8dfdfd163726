// heddle collect: what a program that runs without `heddle record` starts for itself.
#include "cli/record.h"
#include "collect/session.h"
#include "collect/to_file.h"

#include <csignal>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

std::function<int()> declare(CLI::App& app) {
  auto fd = std::make_shared<int>(-1);
  auto options = std::make_shared<collect::ToFileOptions>();
  app.add_option("--fd", *fd, "the socket to the program, inherited")->required();
  app.add_option("-o,--output", options->path, "the trace")->required();
  app.add_flag("--shared-only", options->shared_only,
               "leave out accesses to memory that only one thread touches");
  return [fd, options] {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    Result<std::unique_ptr<collect::Session>> session = collect::Session::accept(*fd, {});
    if (!session.ok()) {
      fmt::print(stderr, "heddle: {}\n", session.error().message);
      return static_cast<int>(kUsage);
    }
    const collect::ToFileResult result = collect::write_session(**session, *options);
    for (const std::string& note : (*session)->decoder().notes()) {
      fmt::print(stderr, "heddle: {}\n", note);
    }
    if (!result.problem.empty()) fmt::print(stderr, "heddle: {}\n", result.problem);
    return result.problem.empty() ? static_cast<int>(kNothingNew) : static_cast<int>(kUsage);
  };
}

}  // namespace

const Verb kCollectVerb = {
    .name = "collect",
    .summary = "Collects for a program that was started without heddle record",
    .description =
        "A program with HEDDLE_OPTIONS in its environment that does not run under `heddle "
        "record` starts this by itself; there is no reason to run it by hand.",
    .example = "HEDDLE_OPTIONS=output=run.heddle ./server",
    .declare = declare,
    .hidden = true,
};

}  // namespace heddle::cli
