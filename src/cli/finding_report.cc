#include "cli/finding_report.h"

#include "base/printable.h"
#include "cli/messages.h"
#include "finding/merge.h"
#include "report/json.h"
#include "report/terminal.h"

#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace heddle::cli {
namespace {

// "a,b,c" as "a, b and c".
std::string in_words(std::string_view names) {
  std::string out;
  for (;;) {
    const std::size_t comma = names.find(',');
    out += names.substr(0, comma);
    if (comma == std::string_view::npos) return out;
    names.remove_prefix(comma + 1);
    out += names.find(',') == std::string_view::npos ? " and " : ", ";
  }
}

}  // namespace

void FindingReportOptions::declare(CLI::App& app, const std::string& default_fail_on,
                                   const std::string& fail_on_description) {
  app.add_option("--suppressions", suppressions,
                 "file of findings to leave out; ThreadSanitizer's files are understood; may be "
                 "given several times")
      ->type_name("FILE");
  app.add_option("--baseline", baseline, "leave out findings that are in this file")
      ->type_name("FILE");
  app.add_option("--write-baseline", write_baseline,
                 "write the findings that are not suppressed to this file")
      ->type_name("FILE");
  app.add_option("--fail-on", fail_on, fail_on_description)
      ->default_val(default_fail_on)
      ->check(CLI::IsMember({"new", "any", "none"}));
  app.add_option("--source", sources, "folder to look for source files in; several")
      ->type_name("DIR");
  app.add_flag("--json", json, "the report as JSON");
}

Result<FindingReport> FindingReport::load(const FindingReportOptions& options) {
  FindingReport out(options);
  for (const std::string& path : options.suppressions) {
    const Status status = out.suppressions_.load(path);
    if (!status.ok()) return status.error();
  }
  for (const std::string& problem : out.suppressions_.problems()) warn(problem);
  if (!options.baseline.empty()) {
    Result<Baseline> loaded = Baseline::load(options.baseline);
    if (!loaded.ok()) return loaded.error();
    out.baseline_ = std::move(*loaded);
  }
  return out;
}

Result<bool> FindingReport::write(Analysis analysis, Output output) {
  std::vector<Finding>& findings = analysis.findings;
  const Day day = today();
  const std::size_t suppressed =
      std::erase_if(findings, [&](const Finding& f) { return suppressions_.suppresses(f, day); });
  for (const std::string& unused : suppressions_.unused(day)) warn(unused);
  if (!options_.write_baseline.empty()) {
    const Status written = write_baseline(options_.write_baseline, findings);
    if (!written.ok()) return written.error();
  }
  const std::size_t unsuppressed = findings.size();
  const std::size_t known =
      std::erase_if(findings, [&](const Finding& f) { return baseline_.contains(f); });
  const std::size_t fresh = findings.size();
  findings = merge_findings(std::move(findings));

  if (options_.json) {
    analysis.about["suppressed"] = std::to_string(suppressed);
    analysis.about["in_baseline"] = std::to_string(known);
    output.write(report::json(findings, analysis.about, analysis.remarks));
  } else {
    report::TerminalOptions terminal = report::terminal_options_for(output.descriptor());
    terminal.source_roots = options_.sources;
    output.keep_colours();
    output.write(report::terminal(findings, terminal));
    if (findings.empty() && analysis.recorded) {
      output.write(fmt::format("nothing found by {}\n", in_words(analysis.detectors)));
    }
    for (const std::string& remark : analysis.remarks) output.write(printable(remark) + "\n");
    if (suppressed != 0) output.write(fmt::format("{} suppressed\n", suppressed));
    if (known != 0) output.write(fmt::format("{} already in the baseline\n", known));
  }
  const Status finished = output.finish();
  if (!finished.ok()) return finished.error();
  const std::size_t counted = options_.fail_on == "any" ? unsuppressed : fresh;
  return options_.fail_on != "none" && counted != 0;
}

}  // namespace heddle::cli
