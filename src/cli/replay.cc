// heddle replay: runs a program again under a schedule.
#include "abi/runtime_options.h"
#include "cli/control.h"
#include "cli/messages.h"
#include "cli/replay_finding.h"
#include "hunt/controlled_run.h"
#include "hunt/schedule_file.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> command;
  bool gdb = false;
  bool preload = false;
  bool quiet = false;
  std::string at;
  std::string finding;
  DetectionOptions detection;
  unsigned timeout = 0;
  std::uint64_t runs = 1;
};

std::vector<std::pair<std::string, std::string>> runtime_options(const Options& options) {
  std::vector<std::pair<std::string, std::string>> runtime = {{"schedule", "replay"},
                                                              {"schedule_in", options.file}};
  if (!options.at.empty()) runtime.emplace_back("stop_at", options.at);
  if (options.gdb) runtime.emplace_back("stop_at_end", "1");
  return runtime;
}

// A file that is gone when this is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / "heddle-sites-XXXXXX").string()) {
    const int fd = mkstemp(path_.data());
    if (fd < 0) return;
    written_ = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }

  bool written() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool written_ = false;
};

// The frames of the runtime are of no interest to whoever debugs the program.
constexpr const char* kLeaveRuntime =
    "python\n"
    "try:\n"
    "  frame = gdb.newest_frame()\n"
    "  while frame is not None and 'libheddle_rt' in (gdb.solib_name(frame.pc()) or ''):\n"
    "    frame = frame.older()\n"
    "  if frame is not None: frame.select()\n"
    "except gdb.error:\n"
    "  pass\n"
    "end\n";

// The debugger runs the program itself, with the schedule in its environment.
int run_in_gdb(const Options& options, std::vector<std::pair<std::string, std::string>> runtime) {
  runtime.emplace_back("level", "off");
  const std::string environment = options_text(runtime);
  const TemporaryFile leave_runtime(kLeaveRuntime);
  std::vector<std::string> words = {"gdb", "-q"};
  if (options.preload) {
    words.insert(words.end(), {"-ex", "set environment LD_PRELOAD " + hunt::find_runtime()});
  }
  words.insert(words.end(), {"-ex", "set environment HEDDLE_OPTIONS " + environment, "-ex",
                             "unset environment HEDDLE_LEADER", "-ex", "set startup-with-shell off",
                             "-ex", "run"});
  if (leave_runtime.written()) words.insert(words.end(), {"-x", leave_runtime.path()});
  words.insert(words.end(), {"-ex", "frame", "--args"});
  words.insert(words.end(), options.command.begin(), options.command.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // The terminal's signals are for the debugger.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  pid_t child = 0;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGINT);
  sigaddset(&usual, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error =
      posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    tell(fmt::format("cannot run gdb: {}; install it, or leave out --gdb", std::strerror(error)));
    return kUsage;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Where the finding is, and, with --gdb, there in gdb.
int run_to_finding(const Options& options) {
  auto runtime = runtime_options(options);
  const Result<FindingPlace> place =
      find_finding({options.detection,
                    options.finding,
                    options.command,
                    {{"schedule", "replay"}, {"schedule_in", options.file}},
                    options.timeout});
  if (!place.ok()) {
    tell(place.error().message);
    return kDiverged;
  }
  tell(place->what);
  if (!options.gdb) return kNothingNew;
  if (place->at_end) return run_in_gdb(options, std::move(runtime));
  const TemporaryFile sites(place->stop_sites);
  if (!sites.written()) {
    tell(fmt::format("cannot write {}: {}", sites.path(), std::strerror(errno)));
    return kUsage;
  }
  runtime.emplace_back("stop_access", place->stop_access);
  runtime.emplace_back("stop_sites", sites.path());
  return run_in_gdb(options, std::move(runtime));
}

int shell_status(const hunt::RunReport& report) {
  return report.result == hunt::RunResult::kCrashed ? 128 + report.value : report.value;
}

int run(Options& options) {
  const Result<hunt::Schedule> schedule = hunt::read_schedule(options.file);
  if (!schedule.ok()) {
    tell(schedule.error().message);
    return kUsage;
  }
  if (options.command.empty()) options.command = schedule->command;
  if (options.command.empty()) {
    tell(fmt::format("{} does not say which program it belongs to; add `-- PROGRAM ARGUMENTS…`",
                     options.file));
    return kUsage;
  }
  if (!options.finding.empty()) return run_to_finding(options);
  if (options.gdb || !options.at.empty()) return run_in_gdb(options, runtime_options(options));

  Result<hunt::StatusPage> page = hunt::StatusPage::make();
  if (!page.ok()) {
    tell(page.error().message);
    return kUsage;
  }
  hunt::RunRequest request;
  request.command = options.command;
  request.runtime = runtime_options(options);
  request.timeout = options.timeout;
  if (options.preload) request.preload = hunt::find_runtime();
  std::uint64_t same = 0;
  Result<hunt::RunReport> first = Error{""};
  for (std::uint64_t i = 0; i < options.runs; ++i) {
    request.quiet = i != 0;  // its output is shown once
    Result<hunt::RunReport> report = run_controlled(request, *page);
    if (!report.ok()) {
      tell(report.error().message);
      return kUsage;
    }
    if (!report->controlled) {
      tell(
          fmt::format("{} does not run under control: build it with heddle-cc or heddle-c++, or "
                      "use --preload if the schedule was made so",
                      options.command[0]));
      return kUsage;
    }
    if (i == 0) first = report;
    if (report->result == first->result && report->hash == first->hash &&
        report->diverged_at.empty()) {
      ++same;
    }
  }
  if (!options.quiet) {
    const bool stayed = first->diverged_at.empty();
    tell(fmt::format("{}: {} ({}){}", stayed ? "stayed on the schedule" : "left the schedule",
                     hunt::run_result_name(first->result), describe(*first),
                     stayed ? "" : "; " + first->diverged_at));
    if (options.runs > 1) tell(fmt::format("the same {} of {} times", same, options.runs));
  }
  if (!first->diverged_at.empty() || same != options.runs) return kDiverged;
  return shell_status(*first);
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->file, "the schedule")->required();
  app.add_flag("--gdb", options->gdb,
               "in gdb: it stops where the run ends as a crash, failure, deadlock or hang");
  app.add_option("--at", options->at,
                 "THREAD.STEP: in gdb, stops when that thread reaches that step (`at` lines of the "
                 "schedule have positions)");
  app.add_option("--finding", options->finding,
                 "number or fingerprint of a finding: says where it happens; with --gdb, stops "
                 "there in gdb, before its last access (a deadlock, hang or crash: where the run "
                 "ends). The run is made with the detectors first")
      ->type_name("FINDING");
  options->detection.declare(app);
  app.add_option("-n,--runs", options->runs, "how often; the output is shown once")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--timeout", options->timeout, "seconds after which a run is a hang; 0: never")
      ->capture_default_str();
  app.add_flag("--preload", options->preload,
               "control a program that was not built with heddle-cc");
  app.add_flag("-q,--quiet", options->quiet, "say nothing about the schedule");
  app.add_option("command", options->command,
                 "the program and its arguments (default: what the schedule says)");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kReplayVerb = {
    .name = "replay",
    .summary = "Runs a program again under a recorded schedule",
    .description =
        "Runs a program under the schedule in a file and says whether it stayed on it. If not, the "
        "place is named, the run goes on at random from the schedule's seed, and the exit status "
        "is "
        "3; otherwise it is the program's own. A schedule made by another build is followed as far "
        "as it fits.",
    .example =
        "heddle replay flaky_test.117.schedule -- ./flaky_test\n"
        "heddle replay --gdb flaky_test.117.schedule -- ./flaky_test\n"
        "heddle replay --gdb --finding 1 flaky_test.117.schedule -- ./flaky_test\n"
        "heddle replay -n 20 -q flaky_test.117.schedule",
    .declare = declare,
};

}  // namespace heddle::cli
