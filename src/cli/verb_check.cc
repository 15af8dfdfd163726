// heddle check: what detectors say about a recorded trace.
#include "cli/verb_check.h"

#include "cli/detection.h"
#include "cli/finding_report.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "trace/source.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::cli {
namespace {

struct Options {
  std::string trace;
  bool salvage = false;
  DetectionOptions detection;
  FindingReportOptions report;
};

int run(const Options& options) {
  Result<FindingReport> report = FindingReport::load(options.report);
  if (!report.ok()) return fail(report.error());
  const Result<Detection> detection = Detection::load(options.detection);
  if (!detection.ok()) return fail(detection.error());
  Result<std::unique_ptr<EventSource>> source =
      open_trace(options.trace, {.salvage = options.salvage});
  if (!source.ok()) return fail(source.error());

  const Detection::Set set = detection->make((*source)->catalog());
  Result<std::vector<Finding>> found = run_detectors(**source, set.detectors);
  if (!found.ok()) return fail(found.error());
  const Status finished = detection->finish(set, (*source)->catalog());
  if (!finished.ok()) return fail(finished.error());
  if (const std::string warning = (*source)->warning(); !warning.empty()) warn(warning);

  const Result<bool> failing = report->write({.findings = std::move(*found),
                                              .remarks = remarks_of(set.detectors),
                                              .detectors = detection->names(),
                                              .about = {{"trace", options.trace}}},
                                             Output());
  if (!failing.ok()) return fail(failing.error());
  return *failing ? kFindings : kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace, "a trace: binary, text notation or STD")->required();
  options->detection.declare(app);
  options->report.declare(
      app, "new",
      "status 1 for findings that are not in the baseline (new), for all that are not "
      "suppressed (any), or never (none)");
  app.add_flag("--salvage", options->salvage,
               "read a damaged trace up to the first damage instead of refusing it");
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
