// heddle run: detectors attached to a running program, no file kept.
#include "cli/run.h"

#include "cli/detection.h"
#include "cli/finding_report.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/schedule_options.h"
#include "hunt/observed_run.h"
#include "hunt/schedule_file.h"

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  DetectionOptions detection;
  FindingReportOptions report;
  ScheduleOptions schedule;
  std::string schedule_output;
  std::string output;
  bool quiet = false;
  std::vector<std::string> command;
};

// The detectors of one process, as one.
class Attached final : public Detector {
 public:
  Attached(std::size_t place, Detection::Set detectors)
      : number(place), set(std::move(detectors)) {}

  void on(std::span<const Event> batch, EventOrdinal first) override {
    for (const auto& detector : set.detectors) detector->on(batch, first);
  }
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override {
    EventOrdinal next = first;
    for (const auto& detector : set.detectors) next = detector->on_executions(batch, first);
    return next;
  }
  std::vector<Finding> finish() override { return finish_all(set.detectors); }
  std::vector<std::string> remarks() const override { return remarks_of(set.detectors); }

  const std::size_t number;  // processes are counted as they connect: 0 is the program itself
  const Detection::Set set;
};

struct ProcessResult {
  std::vector<Finding> findings;
  std::vector<std::string> remarks;
  Status finished = Done{};
};

// What several processes have in common is one finding.
FindingReport::Analysis join(std::map<std::size_t, ProcessResult>& processes) {
  FindingReport::Analysis all;
  std::map<std::string, std::size_t> seen;
  for (auto& [number, process] : processes) {
    std::map<std::string, std::size_t> added;
    for (Finding& finding : process.findings) {
      const auto known = seen.find(finding.fingerprint);
      if (known != seen.end()) {
        all.findings[known->second].count += finding.count;
        continue;
      }
      added.emplace(finding.fingerprint, all.findings.size());
      all.findings.push_back(std::move(finding));
    }
    seen.merge(added);
    all.remarks.insert(all.remarks.end(), process.remarks.begin(), process.remarks.end());
  }
  return all;
}

hunt::ObserveRequest request_for(const Options& options, const Detection& detection) {
  hunt::ObserveRequest request;
  request.command = options.command;
  request.timeout = options.schedule.timeout;
  ScheduleOptions schedule = options.schedule;
  schedule.timeout = 0;  // the request has it
  request.runtime = schedule.runtime();
  request.runtime.emplace_back("level", detection.level());
  if (!options.schedule_output.empty()) {
    request.runtime.emplace_back("schedule_out", options.schedule_output);
  }
  // What the terminal sends is for the program, which has it too; we stay to report.
  request.started = [] {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
  };
  return request;
}

// The command that makes it happen again.
std::string how_to_repeat(const Options& options) {
  const ScheduleOptions& schedule = options.schedule;
  const std::string command = hunt::quote_command(options.command);
  const std::string file = schedule.is_file() ? schedule.strategy : options.schedule_output;
  if (!file.empty())
    return fmt::format("heddle replay {} -- {}", hunt::quote_command({file}), command);
  if (schedule.strategy == "fifo") return fmt::format("heddle run -- {}", command);
  return fmt::format("heddle run --schedule {} --points {} --seed {} -- {}", schedule.strategy,
                     schedule.points, schedule.seed, command);
}

void say_how_it_went(const Options& options, const hunt::ObservedEnd& end) {
  for (const std::string& note : end.notes) tell(note);
  if (!end.units) {
    warn(
        fmt::format("{} was not built with heddle-cc or heddle-c++, so its accesses were not seen; "
                    "build it with CC=heddle-cc CXX=heddle-c++",
                    options.command[0]));
  }
  if (end.status.diverged != 0) tell(end.status.diverged_at);
  if (!options.quiet && !end.passed()) {
    const std::string how = describe(end);  // with all that is known; the report has the rest
    tell(fmt::format("{} ended with {}", options.command[0], how.substr(0, how.find('\n'))));
  }
}

int run(const Options& options) {
  Result<FindingReport> report = FindingReport::load(options.report);
  if (!report.ok()) return fail(report.error());
  const Result<Detection> detection = Detection::load(options.detection);
  if (!detection.ok()) return fail(detection.error());
  Result<Output> output = options.output.empty() ? Result<Output>(Output::standard_error())
                                                 : Output::create(options.output);
  if (!output.ok()) return fail(output.error());

  std::map<std::size_t, ProcessResult> processes;
  std::size_t connected = 0;
  int start_status = 0;
  const Result<hunt::ObservedEnd> end = hunt::observe(
      request_for(options, *detection),
      [&](const Catalog& catalog) {
        return std::make_unique<Attached>(connected++, detection->make(catalog));
      },
      [&](Detector& detector, const Catalog& catalog) {
        auto& attached = static_cast<Attached&>(detector);
        ProcessResult& result = processes[attached.number];
        result.findings = attached.finish();
        result.remarks = attached.remarks();
        if (attached.number == 0) result.finished = detection->finish(attached.set, catalog);
      },
      &start_status);
  if (!end.ok()) {
    fail(end.error());
    return start_status != 0 ? start_status : kUsage;
  }
  say_how_it_went(options, *end);
  for (const auto& [number, process] : processes) {
    if (!process.finished.ok()) return fail(process.finished.error());
  }

  FindingReport::Analysis analysis = join(processes);
  const bool seen =
      !processes.empty() && (end->units || detection->needs() == Needs::kSynchronisation);
  analysis.recorded = seen;
  for (Finding& finding : analysis.findings) finding.replay = how_to_repeat(options);
  analysis.detectors = detection->names();
  analysis.about = {{"command", hunt::quote_command(options.command)},
                    {"schedule", options.schedule.strategy},
                    {"seed", std::to_string(options.schedule.seed)}};
  const Result<bool> failing = report->write(std::move(analysis), std::move(*output));
  if (!failing.ok()) return fail(failing.error());
  if (end->status.diverged != 0) return kDiverged;
  // Nobody who asked for a verdict is to take this for one.
  if (!seen && !*failing && report->decides_status()) {
    return fail(
        Error{fmt::format("{}, so there is nothing to tell findings by",
                          processes.empty() ? "nothing was recorded" : "no access was seen")});
  }
  return *failing ? static_cast<int>(kFindings) : end->shell_status;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->detection.declare(app);
  options->schedule.declare(app, "fifo", "sync", 0);
  app.add_option("--schedule-output", options->schedule_output,
                 "write the schedule of the run to this file, for heddle replay");
  options->report.declare(
      app, "none",
      "status 1 for findings that are not in the baseline (new), for all that are not "
      "suppressed (any); otherwise, and with none, the program's own status");
  app.add_option("-o,--output", options->output,
                 "where the report goes (default: standard error, because standard output is the "
                 "program's)")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", options->quiet, "say nothing besides the report");
  app.add_option("command", options->command, "the program and its arguments")->required();
  app.positionals_at_end();
  return [options] { return run(*options); };
}

}  // namespace

const Verb kRunVerb = {
    .name = "run",
    .summary = "Runs a program with detectors attached",
    .description =
        "Runs a program that was built with heddle-cc or heddle-c++ with detectors that read what "
        "it does while it runs; no trace is kept. The report is that of heddle check on a "
        "recording of the same schedule. How much is recorded follows from the detectors asked "
        "for. "
        "The program keeps its input, output and exit status, unless --fail-on says otherwise; "
        "2 is wrong use, or that --fail-on asks about a run of which too little was recorded, "
        "3 a schedule that the run could not follow.",
    .example =
        "heddle run -- ./server --port 8080\n"
        "heddle run --detect avio --invariants app.inv --schedule random --seed 7 -- ./app\n"
        "heddle run --detect race,lockset --fail-on new --baseline known -- ./test\n"
        "heddle run --detect svd --schedule flaky.117.schedule --json -o report.json -- ./flaky",
    .declare = declare,
};

}  // namespace heddle::cli
