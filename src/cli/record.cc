// heddle record: runs a program and writes what it does to a trace.
#include "cli/record.h"

#include "collect/launch.h"
#include "collect/to_file.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string output;
  std::string level = "flow";
  bool shared_only = false;
  bool quiet = false;
  std::vector<std::string> command;
};

void tell(const std::string& text) {
  fmt::print(stderr, "heddle: {}\n", text);
}

// The trace of the first process has the name asked for; those of its children theirs.
std::string path_for(const Options& options, const collect::Session& session, bool first,
                     unsigned number) {
  if (first) return options.output;
  std::string path = fmt::format("{}.{}", options.output, session.pid());
  if (number > 0) path += fmt::format(".{}", number);
  return path;
}

struct Recording {
  std::string path;
  collect::ToFileResult result;
  std::vector<std::string> notes;
};

int run(const Options& options) {
  collect::LaunchOptions launch_options;
  launch_options.command = options.command;
  launch_options.runtime.emplace_back("level", options.level);
  int start_status = 0;
  Result<std::unique_ptr<collect::Launch>> launch =
      collect::Launch::start(launch_options, &start_status);
  if (!launch.ok()) {
    tell(launch.error().message);
    return start_status;
  }
  // From here on, so that the program does not inherit it: what the terminal sends is for the
  // program, which has it too; we stay to write the trace.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a size limit is a full disk, not a reason to die

  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<std::uint32_t> pids;
  const auto take_sessions = [&] {
    for (;;) {
      Result<std::unique_ptr<collect::Session>> session = (*launch)->next_session();
      if (!session.ok()) {
        tell(session.error().message);
        continue;
      }
      if (*session == nullptr) return;
      const auto same = std::count(pids.begin(), pids.end(), (*session)->pid());
      auto& recording = *recordings.emplace_back(std::make_unique<Recording>());
      recording.path = path_for(options, **session, pids.empty(), static_cast<unsigned>(same));
      pids.push_back((*session)->pid());
      threads.emplace_back([&recording, &options, owned = std::move(*session)] {
        recording.result = collect::write_session(
            *owned, {.path = recording.path, .shared_only = options.shared_only});
        recording.notes = owned->decoder().notes();
      });
    }
  };
  // Children may outlive the program and make children of their own.
  for (std::size_t joined = 0;;) {
    take_sessions();
    if (joined == threads.size() && !(*launch)->connection_pending()) break;
    for (; joined < threads.size(); ++joined) threads[joined].join();
  }

  bool instrumented = false;
  for (const auto& recording : recordings) {
    instrumented = instrumented || recording->result.instrumented;
    for (const std::string& note : recording->notes) tell(note);
    if (!recording->result.problem.empty()) tell(recording->result.problem);
    if (options.quiet || recording->result.bytes == 0) continue;
    tell(fmt::format("{}: {} events of {} threads, {} bytes", recording->path,
                     recording->result.events, recording->result.threads, recording->result.bytes));
  }
  if (!instrumented) {
    tell(
        fmt::format("{} was not built with heddle-cc or heddle-c++, so its accesses were not seen; "
                    "build it with CC=heddle-cc CXX=heddle-c++",
                    options.command[0]));
  }
  return collect::shell_status((*launch)->wait());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("-o,--output", options->output,
                 "the trace; children of the program get its name and their process number "
                 "(default: PROGRAM.heddle)");
  app.add_option("--level", options->level,
                 "flow: every executed segment, for slices and inferred units; accesses: memory "
                 "accesses, synchronisation and calls; off: nothing")
      ->check(CLI::IsMember({"flow", "accesses", "off"}))
      ->capture_default_str();
  app.add_flag("--shared-only", options->shared_only,
               "leave out accesses to memory that only one thread touches");
  app.add_flag("-q,--quiet", options->quiet, "say nothing when all is well");
  app.add_option("command", options->command, "the program and its arguments")->required();
  app.positionals_at_end();
  return [options] {
    if (options->output.empty()) {
      options->output = std::filesystem::path(options->command[0]).filename().string() + ".heddle";
    }
    return run(*options);
  };
}

}  // namespace

const Verb kRecordVerb = {
    .name = "record",
    .summary = "Runs a program and writes what it does to a trace",
    .description =
        "Runs a program that was built with heddle-cc or heddle-c++ and records its memory "
        "accesses, synchronisation, calls and, at the flow level, every executed segment. The "
        "program keeps its input, output and exit status. The trace is written while it runs and "
        "is "
        "complete up to the last step when the program crashes or is killed.",
    .example =
        "heddle record -o run.heddle -- ./server --port 8080\n"
        "heddle show run.heddle",
    .declare = declare,
};

}  // namespace heddle::cli
