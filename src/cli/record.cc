// heddle record: runs a program and writes what it does to a trace.
#include "cli/record.h"

#include "cli/schedule_options.h"
#include "collect/launch.h"
#include "collect/to_file.h"
#include "hunt/controlled_run.h"
#include "hunt/verify.h"
#include "trace/source.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string output;
  std::string level = "flow";
  bool shared_only = false;
  bool quiet = false;
  ScheduleOptions schedule;
  std::string schedule_output;
  bool verify = false;
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

// How one recording went, beyond what it said already.
struct Recorded {
  int status = 0;  // what a shell would say of the program
  bool started = false;
  heddle_status outcome{};  // what the runtime left
};

Recorded record(const Options& options) {
  Recorded recorded;
  collect::LaunchOptions launch_options;
  launch_options.command = options.command;
  launch_options.runtime = options.schedule.runtime();
  launch_options.runtime.emplace_back("level", options.level);
  if (!options.schedule_output.empty()) {
    launch_options.runtime.emplace_back("schedule_out", options.schedule_output);
  }
  Result<hunt::StatusPage> page = hunt::StatusPage::make();
  if (page.ok()) {
    fcntl(page->fd(), F_SETFD, 0);  // the program inherits it
    launch_options.runtime.emplace_back("status_fd", std::to_string(page->fd()));
  }
  int start_status = 0;
  Result<std::unique_ptr<collect::Launch>> launch =
      collect::Launch::start(launch_options, &start_status);
  if (!launch.ok()) {
    tell(launch.error().message);
    recorded.status = start_status;
    return recorded;
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

  // A runtime that started and did not call has said why.
  bool instrumented =
      recordings.empty() && page.ok() && page->status()->magic == HEDDLE_STATUS_MAGIC;
  for (const auto& recording : recordings) {
    // Of what could not be written it was not seen how it is built.
    instrumented =
        instrumented || recording->result.instrumented || !recording->result.problem.empty();
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
  recorded.status = collect::shell_status((*launch)->wait());
  recorded.started = true;
  if (page.ok()) recorded.outcome = *page->status();
  return recorded;
}

// Follows the schedule of the run that was just recorded, and compares the traces.
int verify(const Options& options, std::uint32_t sources) {
  Options again = options;
  again.output = options.output + ".verify";
  again.schedule.strategy = options.schedule_output;
  again.schedule_output.clear();
  again.quiet = true;
  const Recorded recorded = record(again);
  if (!recorded.started) return kUsage;
  Result<std::unique_ptr<EventSource>> first = open_trace(options.output, {.salvage = true});
  Result<std::unique_ptr<EventSource>> second = open_trace(again.output, {.salvage = true});
  if (!first.ok() || !second.ok()) {
    tell((first.ok() ? second : first).error().message);
    return kUsage;
  }
  const auto difference = hunt::first_difference(**first, **second);
  std::error_code ignored;
  std::filesystem::remove(again.output, ignored);
  if (!difference.ok()) {
    tell(difference.error().message);
    return kUsage;
  }
  if (!difference->has_value()) {
    tell("verified: the replay has the same events");
    return kNothingNew;
  }
  tell(fmt::format("not wholly under control: event {} is `{}`, in the replay `{}`",
                   (*difference)->ordinal, (*difference)->first, (*difference)->second));
  if (recorded.outcome.diverged != 0) tell(recorded.outcome.diverged_at);
  tell("the program used: " + hunt::name_sources(sources | recorded.outcome.sources));
  return kDiverged;
}

// Not a device or a pipe, next to which nothing can stand.
bool is_plain_file(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

int run(Options& options) {
  if (options.schedule_output.empty() && (options.verify || is_plain_file(options.output))) {
    options.schedule_output = schedule_of(options.output);
  }
  const Recorded recorded = record(options);
  if (recorded.started && recorded.outcome.diverged != 0) {
    return kDiverged;
  }
  if (!recorded.started || !options.verify) return recorded.status;
  const int verified = verify(options, recorded.outcome.sources);
  return verified == kNothingNew ? recorded.status : verified;
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
  options->schedule.declare(app, "fifo", "sync", 0);
  app.add_option("--schedule-output", options->schedule_output,
                 "write the schedule of the run to this file, for heddle replay (default: that of "
                 "the trace, with .schedule for .heddle)");
  app.add_flag("--verify", options->verify,
               "replay the run once and say whether something is not under control");
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
