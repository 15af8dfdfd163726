// heddle check: what detectors say about a recorded trace.
#include "cli/verb_check.h"

#include "cli/detection.h"
#include "cli/finding_report.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/schedule_options.h"
#include "cli/trace_input.h"
#include "hunt/schedule_file.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  TraceInput trace;
  DetectionOptions detection;
  FindingReportOptions report;
};

// heddle record leaves the schedule next to the trace.
std::string how_to_replay(const std::string& trace) {
  const std::string path = schedule_of(trace);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const Result<hunt::Schedule> schedule = hunt::read_schedule(path);
  if (!schedule.ok() || schedule->command.empty()) return {};
  return fmt::format("heddle replay {} -- {}", hunt::quote_command({path}),
                     hunt::quote_command(schedule->command));
}

int run(const Options& options) {
  Result<FindingReport> report = FindingReport::load(options.report);
  if (!report.ok()) return fail(report.error());
  const Result<Detection> detection = Detection::load(options.detection);
  if (!detection.ok()) return fail(detection.error());
  std::optional<Detection::Set> set;
  EventOrdinal first = 0;
  Status checked = Done{};
  std::vector<Finding> findings;
  std::vector<std::string> remarks;
  const Status read =
      read_trace(options.trace, [&](const EventSource& source, std::span<const Event> events) {
        if (!set) set = detection->make(source.catalog());
        for (const auto& detector : set->detectors) detector->on(events, first);
        first += events.size();
        if (!events.empty()) return true;
        // Names are taken from the catalog, which goes with the source.
        findings = finish_all(set->detectors);
        remarks = remarks_of(set->detectors);
        checked = detection->finish(*set, source.catalog());
        return false;
      });
  if (!read.ok()) return fail(read.error());
  if (!checked.ok()) return fail(checked.error());
  const std::string again = how_to_replay(options.trace.path);
  for (Finding& finding : findings) finding.replay = again;

  const Result<bool> failing = report->write({.findings = std::move(findings),
                                              .remarks = std::move(remarks),
                                              .detectors = detection->names(),
                                              .about = {{"trace", options.trace.path}}},
                                             Output());
  if (!failing.ok()) return fail(failing.error());
  return *failing ? kFindings : kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_trace(app, options->trace);
  options->detection.declare(app);
  options->report.declare(
      app, "new",
      "status 1 for findings that are not in the baseline (new), for all that are not "
      "suppressed (any), or never (none)");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kCheckVerb = {
    .name = "check",
    .summary = "Runs detectors over a recorded trace",
    .description =
        "Reads a trace (binary, text notation or RAPID's STD text, told apart by content), runs "
        "the detectors named and prints what they found. Exit status: 0 nothing new, 1 findings, "
        "2 wrong use or a trace that cannot be read.",
    .example =
        "heddle check run.heddle --detect race,lockset\n"
        "heddle check run.heddle --detect avio --invariants app.inv\n"
        "heddle check run.heddle --detect race --suppressions tsan.supp --baseline known\n"
        "heddle check run.heddle --detect frontier --marks app.marks\n"
        "heddle check trace.std --detect serializability --json",
    .declare = declare,
};

}  // namespace heddle::cli
