// heddle try: runs a program under many seeds and counts how the runs end.
#include "cli/control.h"
#include "cli/schedule_options.h"
#include "hunt/schedule_file.h"
#include "hunt/try_seeds.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

struct Options {
  ScheduleOptions schedule;
  hunt::TryOptions campaign;
  std::string junit;
  bool preload = false;
  bool quiet = false;
  std::vector<std::string> command;
};

void tell(const std::string& text) {
  fmt::print(stderr, "heddle: {}\n", text);
}

void show_progress(const hunt::TryResult& result, std::uint64_t runs) {
  fmt::print(stderr, "\r{} of {} runs, {} failed, {:.0f} per second ", result.runs, runs,
             result.failures.size(), static_cast<double>(result.runs) / result.seconds);
}

std::string replay_command(const Options& options, const hunt::TryResult& result,
                           const hunt::TriedSeed& tried) {
  if (tried.schedule.empty()) {
    const ScheduleOptions& schedule = options.schedule;
    std::string command = fmt::format("heddle record --schedule {} --points {} --seed {}",
                                      schedule.strategy, schedule.points, tried.seed);
    if (schedule.strategy == "random") {
      command += fmt::format(" --switch-every {}", schedule.switch_every);
    } else if (schedule.strategy == "pct") {
      command += fmt::format(" --pct-depth {} --pct-length {}", schedule.pct_depth,
                             schedule.pct_length != 0 ? schedule.pct_length : result.pct_length);
    }
    return command + " -- " + hunt::quote_command(options.command);
  }
  return fmt::format("heddle replay {} -- {}", tried.schedule,
                     hunt::quote_command(options.command));
}

void print(const Options& options, const hunt::TryResult& result) {
  fmt::print("{} runs in {:.1f} s ({:.0f} per second), {} different schedules\n", result.runs,
             result.seconds, static_cast<double>(result.runs) / result.seconds, result.different);
  for (int i = 0; i < hunt::kRunResults; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const auto kind = static_cast<hunt::RunResult>(i);
    if (result.counts[index] == 0 && kind != hunt::RunResult::kPassed) continue;
    fmt::print("  {:<11} {:>6}", hunt::run_result_name(kind), result.counts[index]);
    if (kind != hunt::RunResult::kPassed) {
      const hunt::TriedSeed& first = *result.first[index];
      fmt::print("   first with seed {}: {}", first.seed, describe(first.report));
    }
    fmt::print("\n");
  }
  for (int i = 1; i < hunt::kRunResults; ++i) {
    const std::optional<hunt::TriedSeed>& first = result.first[static_cast<std::size_t>(i)];
    if (!first.has_value()) continue;
    // The one that was kept may be another than the first to be seen.
    fmt::print("replay   {}\n", replay_command(options, result, *first));
    if (!first->note.empty()) fmt::print("         but {}\n", first->note);
  }
  if (result.seized != 0) {
    fmt::print(
        "in {} runs a thread slept in a call that is not under control; these may differ from "
        "time to time\n",
        result.seized);
  }
}

int run(Options& options) {
  options.campaign.request.command = options.command;
  options.campaign.request.timeout = options.schedule.timeout;
  options.campaign.request.runtime = options.schedule.runtime(false);
  options.campaign.strategy = options.schedule.strategy;
  options.campaign.pct_length = options.schedule.pct_length;
  if (options.schedule.is_file()) {
    tell(fmt::format("--schedule {}: try takes fifo, random or pct; heddle replay follows a file",
                     options.schedule.strategy));
    return kUsage;
  }
  if (options.preload) {
    options.campaign.request.preload = hunt::find_runtime();
    if (options.campaign.request.preload.empty()) {
      tell("--preload: libheddle_rt.so is not where the command expects it; reinstall Heddle");
      return kUsage;
    }
  }
  if (options.campaign.schedule_prefix.empty()) {
    options.campaign.schedule_prefix =
        std::filesystem::path(options.command[0]).filename().string();
  }
  const bool terminal = isatty(STDERR_FILENO) != 0 && !options.quiet;
  const Result<hunt::TryResult> result =
      hunt::try_seeds(options.campaign, [&](const hunt::TryResult& so_far) {
        if (terminal) show_progress(so_far, options.campaign.runs);
      });
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!result.ok()) {
    tell(result.error().message);
    return kUsage;
  }
  if (!options.quiet) print(options, *result);
  if (!options.junit.empty()) {
    const Status written = write_junit(options.campaign, *result, options.junit);
    if (!written.ok()) {
      tell(written.error().message);
      return kUsage;
    }
  }
  return result->failures.empty() ? kNothingNew : kFindings;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("-n,--runs", options->campaign.runs, "how many seeds to try")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options->campaign.first_seed, "the first seed; the others follow it")
      ->capture_default_str();
  app.add_option("-j,--processes", options->campaign.processes,
                 "runs at once (default: one per processor)");
  app.add_flag("--until-failure", options->campaign.until_failure, "stop at the first that fails");
  app.add_option("--keep", options->campaign.keep,
                 "failing seeds of which the schedule is kept as a file")
      ->capture_default_str();
  app.add_option("-o,--output", options->campaign.schedule_prefix,
                 "schedule files are OUTPUT.SEED.schedule (default: the program's name)");
  app.add_option("--junit", options->junit, "write the runs as JUnit test cases to this file");
  app.add_flag("!--no-fork-server", options->campaign.fork_server,
               "start every run anew, instead of forking a program that is loaded already");
  app.add_flag("--preload", options->preload,
               "control a program that was not built with heddle-cc: its synchronisation only");
  app.add_flag("-q,--quiet", options->quiet, "print nothing; the exit status tells");
  options->schedule.declare(app, "random", "shared", 10, false);
  app.add_option("command", options->command, "the program and its arguments")->required();
  app.positionals_at_end();
  return [options] { return run(*options); };
}

}  // namespace

const Verb kTryVerb = {
    .name = "try",
    .summary = "Runs a program under many seeds and counts how the runs end",
    .description =
        "Runs a program under many schedules, one seed each, several processes at once, recording "
        "nothing. Counts the runs that passed, failed (exit status other than 0), crashed, "
        "deadlocked or hung, and keeps the schedules of failing ones as files that `heddle replay` "
        "follows. Exit status: 0 when every run passed, 1 when not.",
    .example =
        "heddle try -n 1000 -- ./flaky_test\n"
        "heddle try --until-failure --schedule pct -- ./flaky_test\n"
        "heddle replay flaky_test.117.schedule -- ./flaky_test",
    .declare = declare,
};

}  // namespace heddle::cli
