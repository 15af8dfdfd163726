// heddle check: what detectors say about a recorded trace.
#include "cli/verb_check.h"

#include "detect/avio/invariants_file.h"
#include "detect/race/frontier.h"
#include "detect/registry.h"
#include "finding/baseline.h"
#include "finding/suppressions.h"
#include "hunt/learn.h"
#include "report/json.h"
#include "report/terminal.h"
#include "trace/source.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string trace;
  std::string detect = "race";
  std::vector<std::string> suppressions;
  std::string baseline;
  std::string write_baseline;
  std::string fail_on;
  std::vector<std::string> sources;
  std::string invariants;
  unsigned granule = 1;
  std::string l1 = "32K,4,64";
  unsigned cores = 0;
  std::string marks;
  bool mark_auto = false;
  svd::OnlineOptions svd;
  bool json = false;
  bool salvage = false;
};

int fail(const Error& error) {
  fmt::print(stderr, "heddle: {}\n", error.message);
  return kUsage;
}

void warn(std::string_view what) {
  fmt::print(stderr, "heddle: {}\n", what);
}

// Reads the files first, so that a wrong name costs no analysis.
Result<Suppressions> load_suppressions(const Options& options) {
  Suppressions out;
  for (const std::string& path : options.suppressions) {
    Status status = out.load(path);
    if (!status.ok()) return status.error();
  }
  for (const std::string& problem : out.problems()) warn(problem);
  return out;
}

bool names_frontier(std::string_view detect) {
  return ("," + std::string(detect) + ",").find(",frontier,") != std::string::npos;
}

// Which pass of `frontier`: the file of marks is read if it is there, else made.
Result<race::FrontierSettings> frontier_settings(const Options& options) {
  using Pass = race::FrontierSettings::Pass;
  race::FrontierSettings out;
  if (!names_frontier(options.detect) || options.mark_auto) return out;
  if (options.marks.empty()) {
    return Error{
        "frontier needs to know what synchronises: name a file with --marks, to be made "
        "by the first run and read by the second, or give --mark-auto"};
  }
  out.pass = std::filesystem::exists(options.marks) ? Pass::kApply : Pass::kFind;
  if (out.pass == Pass::kFind) return out;
  Result<race::Marks> marks = race::Marks::load(options.marks);
  if (!marks.ok()) return marks.error();
  if (marks->unmarked() != 0) {
    warn(fmt::format("{}: {} pairs are not marked and count as data", options.marks,
                     marks->unmarked()));
  }
  out.marks = std::move(*marks);
  return out;
}

Status save_marks(const Options& options, const race::FrontierSettings& frontier) {
  using Pass = race::FrontierSettings::Pass;
  if (options.marks.empty() || frontier.pass == Pass::kApply) return Done{};
  const Status saved = frontier.marks.save(options.marks);
  if (!saved.ok()) return saved;
  const char* const next = frontier.pass == Pass::kFind
                               ? "mark each as sync or data, then run again"
                               : "marked automatically";
  fmt::print(stderr, "heddle: {}: {} frontier races; {}\n", options.marks,
             frontier.marks.pairs().size(), next);
  return Done{};
}

int run(const Options& options) {
  Result<Suppressions> suppressions = load_suppressions(options);
  if (!suppressions.ok()) return fail(suppressions.error());
  Baseline baseline;
  if (!options.baseline.empty()) {
    Result<Baseline> loaded = Baseline::load(options.baseline);
    if (!loaded.ok()) return fail(loaded.error());
    baseline = std::move(*loaded);
  }

  DetectorSettings settings;
  settings.granule = options.granule;
  settings.cores = options.cores;
  const Result<avio::CacheShape> l1 = avio::parse_cache_shape(options.l1);
  if (!l1.ok()) return fail(l1.error());
  settings.l1 = *l1;
  settings.svd = options.svd;
  avio::Invariants invariants;
  if (!options.invariants.empty()) {
    Result<avio::Invariants> read = avio::read_invariants(options.invariants);
    if (!read.ok()) return fail(read.error());
    invariants = std::move(*read);
    settings.invariants = &invariants;
  }

  Result<race::FrontierSettings> frontier = frontier_settings(options);
  if (!frontier.ok()) return fail(frontier.error());
  settings.frontier = &*frontier;

  Result<std::unique_ptr<EventSource>> source =
      open_trace(options.trace, {.salvage = options.salvage});
  if (!source.ok()) return fail(source.error());
  Result<std::vector<std::unique_ptr<Detector>>> detectors =
      make_detectors(options.detect, (*source)->catalog(), settings);
  if (!detectors.ok()) return fail(detectors.error());
  Result<std::vector<Finding>> found = run_detectors(**source, *detectors);
  if (!found.ok()) return fail(found.error());
  if (settings.invariants != nullptr) {
    const Status same =
        hunt::check_same_program(invariants, (*source)->catalog(), options.invariants);
    if (!same.ok()) return fail(same.error());
  }
  if (const std::string warning = (*source)->warning(); !warning.empty()) warn(warning);

  if (names_frontier(options.detect)) {
    const Status saved = save_marks(options, *frontier);
    if (!saved.ok()) return fail(saved.error());
  }

  std::vector<Finding> findings = std::move(*found);
  const Day day = today();
  const std::size_t all = findings.size();
  std::erase_if(findings, [&](const Finding& f) { return suppressions->suppresses(f, day); });
  const std::size_t suppressed = all - findings.size();
  for (const std::string& unused : suppressions->unused(day)) warn(unused);

  if (!options.write_baseline.empty()) {
    const Status written = write_baseline(options.write_baseline, findings);
    if (!written.ok()) return fail(written.error());
  }
  const std::size_t unsuppressed = findings.size();
  std::erase_if(findings, [&](const Finding& f) { return baseline.contains(f); });
  const std::size_t in_baseline = unsuppressed - findings.size();

  std::vector<std::string> remarks;
  for (const std::unique_ptr<Detector>& detector : *detectors) {
    std::vector<std::string> more = detector->remarks();
    std::move(more.begin(), more.end(), std::back_inserter(remarks));
  }
  if (options.json) {
    fmt::print("{}", report::json(findings,
                                  {{"trace", options.trace},
                                   {"suppressed", fmt::format("{}", suppressed)},
                                   {"in_baseline", fmt::format("{}", in_baseline)}},
                                  remarks));
  } else {
    report::TerminalOptions terminal = report::terminal_options_for(1);
    terminal.source_roots = options.sources;
    fmt::print("{}", report::terminal(findings, terminal));
    if (findings.empty()) fmt::print("nothing found by {}\n", options.detect);
    for (const std::string& remark : remarks) fmt::print("{}\n", remark);
    if (suppressed != 0) fmt::print("{} suppressed\n", suppressed);
    if (in_baseline != 0) fmt::print("{} already in the baseline\n", in_baseline);
  }
  const std::size_t counted = options.fail_on == "any" ? unsuppressed : findings.size();
  return options.fail_on == "none" || counted == 0 ? kNothingNew : kFindings;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace, "a trace: binary, text notation or STD")->required();
  app.add_option("--detect", options->detect, "detectors, separated by commas")
      ->capture_default_str();
  app.add_option("--suppressions", options->suppressions,
                 "file of findings to leave out; ThreadSanitizer's files are understood; may be "
                 "given several times")
      ->type_name("FILE");
  app.add_option("--baseline", options->baseline, "leave out findings that are in this file")
      ->type_name("FILE");
  app.add_option("--write-baseline", options->write_baseline,
                 "write the findings that are not suppressed to this file")
      ->type_name("FILE");
  app.add_option("--fail-on", options->fail_on,
                 "status 1 for findings that are not in the baseline (new), for all that are not "
                 "suppressed (any), or never (none)")
      ->default_val("new")
      ->check(CLI::IsMember({"new", "any", "none"}));
  app.add_option("--invariants", options->invariants,
                 "avio: report only violations of what heddle learn wrote to this file")
      ->type_name("FILE");
  app.add_option("--granule", options->granule, "avio: bytes that are one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 64}))
      ->capture_default_str();
  app.add_option("--l1", options->l1, "avio-h: size, ways and line of every core's cache")
      ->type_name("SIZE,WAYS,LINE")
      ->capture_default_str();
  app.add_option("--cores", options->cores, "avio-h: cores of the machine; 0: one per thread")
      ->capture_default_str();
  app.add_option("--marks", options->marks,
                 "frontier: the marked pairs; made when it does not exist yet")
      ->type_name("FILE");
  app.add_flag("--mark-auto", options->mark_auto,
               "frontier: the synchronisation in the trace is what synchronises");
  app.add_option("--source", options->sources, "folder to look for source files in; several")
      ->type_name("DIR");
  app.add_flag("--svd-merge-control", options->svd.merge_control,
               "svd: control dependences connect units, too");
  app.add_flag("--svd-propagate-address", options->svd.propagate_address,
               "svd: address dependences connect units, too");
  app.add_flag("!--svd-all-blocks", options->svd.inputs_only,
               "svd: check everything that a unit accessed, not only its inputs");
  app.add_option("--svd-block-size", options->svd.block_size,
                 "svd: bytes that count as one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->capture_default_str();
  app.add_flag("--json", options->json, "the report as JSON");
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
