#include "cli/detection.h"

#include "cli/messages.h"
#include "detect/avio/invariants_file.h"
#include "hunt/learn.h"

#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace heddle::cli {
namespace {

using Pass = race::FrontierSettings::Pass;

bool names_frontier(std::string_view detect) {
  return ("," + std::string(detect) + ",").find(",frontier,") != std::string::npos;
}

// Which pass of `frontier`: the file of marks is read if it is there, else made.
Result<race::FrontierSettings> frontier_settings(const DetectionOptions& options) {
  race::FrontierSettings out;
  if (!names_frontier(options.chosen()) || options.mark_auto) return out;
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

}  // namespace

void DetectionOptions::declare(CLI::App& app) {
  app.add_option("--detect", detect,
                 "detectors, separated by commas (default: race,outcome, and avio when there are "
                 "invariants)");
  app.add_option("--invariants", invariants,
                 "avio: report only violations of what heddle learn wrote to this file")
      ->type_name("FILE");
  app.add_option("--granule", granule, "avio: bytes that are one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 64}))
      ->capture_default_str();
  app.add_option("--l1", l1, "avio-h: size, ways and line of every core's cache")
      ->type_name("SIZE,WAYS,LINE")
      ->capture_default_str();
  app.add_option("--cores", cores, "avio-h: cores of the machine; 0: one per thread")
      ->capture_default_str();
  app.add_option("--marks", marks, "frontier: the marked pairs; made when it does not exist yet")
      ->type_name("FILE");
  app.add_flag("--mark-auto", mark_auto,
               "frontier: the synchronisation in the trace is what synchronises");
  app.add_flag("--svd-merge-control", svd.merge_control,
               "svd: control dependences connect units, too");
  app.add_flag("--svd-propagate-address", svd.propagate_address,
               "svd: address dependences connect units, too");
  app.add_flag("!--svd-all-blocks", svd.inputs_only,
               "svd: check everything that a unit accessed, not only its inputs");
  app.add_option("--svd-block-size", svd.block_size, "svd: bytes that count as one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->capture_default_str();
}

std::string DetectionOptions::chosen() const {
  if (!detect.empty()) return detect;
  return invariants.empty() ? "race,outcome" : "avio,race,outcome";
}

Result<Detection> Detection::load(const DetectionOptions& options) {
  Detection out(options);
  const Result<avio::CacheShape> l1 = avio::parse_cache_shape(options.l1);
  if (!l1.ok()) return l1.error();
  out.settings_.granule = options.granule;
  out.settings_.cores = options.cores;
  out.settings_.l1 = *l1;
  out.settings_.svd = options.svd;
  if (!options.invariants.empty()) {
    Result<avio::Invariants> read = avio::read_invariants(options.invariants);
    if (!read.ok()) return read.error();
    out.invariants_ = std::make_shared<const avio::Invariants>(std::move(*read));
    out.settings_.invariants = out.invariants_.get();
  }
  Result<race::FrontierSettings> frontier = frontier_settings(options);
  if (!frontier.ok()) return frontier.error();
  out.frontier_ = std::move(*frontier);
  const Catalog none;
  const auto named = make_detectors(out.names_, none, out.settings_);
  if (!named.ok()) return named.error();
  return out;
}

Detection::Set Detection::make(const Catalog& catalog) const {
  Set set;
  set.frontier = std::make_unique<race::FrontierSettings>(frontier_);
  DetectorSettings settings = settings_;
  settings.frontier = set.frontier.get();
  auto made = make_detectors(names_, catalog, settings);
  HEDDLE_CHECK(made.ok());  // load() tried the names
  set.detectors = std::move(*made);
  return set;
}

Status Detection::save_marks(const race::FrontierSettings& frontier) const {
  if (options_.marks.empty() || frontier.pass == Pass::kApply) return Done{};
  Status saved = frontier.marks.save(options_.marks);
  if (!saved.ok()) return saved;
  tell(fmt::format("{}: {} frontier races; {}", options_.marks, frontier.marks.pairs().size(),
                   frontier.pass == Pass::kFind ? "mark each as sync or data, then run again"
                                                : "marked automatically"));
  return Done{};
}

Status Detection::finish(const Set& set, const Catalog& catalog) const {
  if (invariants_ != nullptr) {
    const Status same = hunt::check_same_program(*invariants_, catalog, options_.invariants);
    if (!same.ok()) return same;
  }
  if (!names_frontier(names_)) return Done{};
  return save_marks(*set.frontier);
}

}  // namespace heddle::cli
