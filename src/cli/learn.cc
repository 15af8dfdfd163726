// heddle learn: which pairs of accesses are never split in passing runs; and merge, show, diff of
// what was learned.
#include "cli/learn.h"

#include "cli/schedule_options.h"
#include "detect/avio/granules.h"
#include "detect/avio/invariants_file.h"
#include "hunt/learn.h"

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

using avio::Invariants;

struct Options {
  hunt::LearnOptions learn;
  std::string output;
  ScheduleOptions schedule;
  bool add = false;
  bool quiet = false;

  std::vector<std::string> files;
  std::string merge_output;
  bool all = false;
};

int fail(const std::string& message) {
  fmt::print(stderr, "heddle: {}\n", message);
  return kUsage;
}

void show_progress(const hunt::LearnProgress& now, std::uint64_t runs) {
  fmt::print(stderr, "run {:>{}}/{}  seed {}  {:<7}  dropped {}  {} invariants, {} pairs{}\n",
             now.run, std::to_string(runs).size(), runs, now.seed, now.passed ? "passed" : "failed",
             now.dropped, now.invariants, now.pairs, now.passed ? "" : "  (" + now.end + ")");
}

int run_learn(Options& options) {
  if (options.learn.request.command.empty()) {
    return fail("there is no program to run: heddle learn -o app.inv -- PROGRAM");
  }
  const std::string program = hunt::program_name(options.learn.request.command[0]);
  if (options.output.empty()) options.output = program + ".inv";
  Invariants known(program);
  if (options.add && std::filesystem::exists(options.output)) {
    Result<Invariants> read = avio::read_invariants(options.output);
    if (!read.ok()) return fail(read.error().message);
    known = std::move(*read);
  }
  if (options.schedule.is_file()) {
    return fail(
        fmt::format("--schedule {}: one schedule teaches nothing; learn takes random, pct "
                    "or fifo",
                    options.schedule.strategy));
  }
  options.learn.request.timeout = std::exchange(options.schedule.timeout, 0);
  options.learn.request.runtime = options.schedule.runtime(false);
  options.learn.request.runtime.emplace_back("level", "accesses");
  std::signal(SIGPIPE, SIG_IGN);

  Result<hunt::LearnResult> learned =
      hunt::learn(options.learn, known, [&](const hunt::LearnProgress& now) {
        if (!options.quiet) show_progress(now, options.learn.runs);
      });
  if (!learned.ok()) return fail(learned.error().message);
  const Status written = avio::write_invariants(learned->invariants, options.output);
  if (!written.ok()) return fail(written.error().message);
  if (!options.quiet) {
    fmt::print(
        stderr, "{}: {} invariants and {} pairs from {} passing runs{}{}\n", options.output,
        learned->invariants.invariant_count(), learned->invariants.pair_count(),
        learned->invariants.runs().size(),
        learned->passed == learned->runs
            ? ""
            : fmt::format(", {} failed and taught nothing", learned->runs - learned->passed),
        learned->stable ? fmt::format("; stable for {} runs", options.learn.until_stable) : "");
  }
  return kNothingNew;
}

int run_merge(const Options& options) {
  Result<Invariants> out = Error{"there is nothing to merge"};
  for (const std::string& file : options.files) {
    Result<Invariants> next = avio::read_invariants(file);
    if (!next.ok()) return fail(next.error().message);
    if (!out.ok()) {
      out = std::move(next);
      continue;
    }
    const Status merged = out->merge(*next);
    if (!merged.ok()) return fail(fmt::format("{}: {}", file, merged.error().message));
  }
  if (!out.ok()) return fail(out.error().message);
  const Status written = avio::write_invariants(*out, options.merge_output);
  return written.ok() ? static_cast<int>(kNothingNew) : fail(written.error().message);
}

std::string site_line(const Invariants::LearnedSite& site) {
  return fmt::format("{} of `{}`  {}  in {}", site.text.kind,
                     site.text.variable.empty() ? "?" : site.text.variable, site.text.place,
                     site.text.function.empty() ? "?" : site.text.function);
}

int run_show(const Options& options) {
  Result<Invariants> read = avio::read_invariants(options.files.at(0));
  if (!read.ok()) return fail(read.error().message);
  const Invariants& learned = *read;
  std::set<std::string> builds, commands;
  for (const std::string& id : learned.runs()) {
    builds.insert(learned.run_text(id).build);
    commands.insert(learned.run_text(id).command);
  }
  fmt::print("program     {}\n", learned.program());
  for (const std::string& command : commands) fmt::print("command     {}\n", command);
  for (const std::string& build : builds) {
    fmt::print("build       {}\n", build.empty() ? "unknown" : build);
  }
  fmt::print("runs        {} passed, {} failed\n", learned.runs().size(),
             learned.failed_runs().size());
  fmt::print("threshold   {}\n", learned.threshold());
  fmt::print("sites       {} executed\n", learned.sites().size());
  fmt::print("invariants  {} instructions, {} pairs\n", learned.invariant_count(),
             learned.pair_count());
  if (options.all) {
    for (const auto& [key, site] : learned.sites()) {
      if (learned.holds(site)) {
        fmt::print("  {}  never split in {} runs\n", site_line(site), site.executed.size());
      }
    }
  }
  bool first = true;
  for (const auto& [key, site] : learned.sites()) {
    const std::size_t violated = learned.violated(site).size();
    if (violated == 0) continue;
    if (first) fmt::print("split in passing runs:\n");
    first = false;
    fmt::print("  {}  in {} of {} runs{}\n", site_line(site), violated, site.executed.size(),
               learned.holds(site) ? " (tolerated)" : "");
    if (learned.holds(site)) continue;
    for (const auto& [p, runs] : site.made) {
      const auto first_of_pair = learned.sites().find(p);
      if (first_of_pair == learned.sites().end() || !learned.holds(learned.pair(p, key))) continue;
      fmt::print("    but not after the {}, in {} runs\n", site_line(first_of_pair->second),
                 runs.size());
    }
  }
  return kNothingNew;
}

int run_diff(const Options& options) {
  Result<Invariants> a = avio::read_invariants(options.files.at(0));
  if (!a.ok()) return fail(a.error().message);
  Result<Invariants> b = avio::read_invariants(options.files.at(1));
  if (!b.ok()) return fail(b.error().message);
  bool differ = a->program() != b->program();
  if (differ) fmt::print("programs: {} and {}\n", a->program(), b->program());
  const auto only_in = [&](const Invariants& one, const Invariants& other, char sign) {
    for (const auto& [key, site] : one.sites()) {
      if (!one.holds(site) || other.holds(key)) continue;
      const auto there = other.sites().find(key);
      fmt::print("{} {}  ({})\n", sign, site_line(site),
                 there == other.sites().end() || there->second.executed.empty()
                     ? "never executed there"
                     : "split there");
      differ = true;
    }
    for (const auto& [i, site] : one.sites()) {
      if (one.holds(site)) continue;
      for (const auto& [p, runs] : site.made) {
        const Invariants::Pair there = other.pair(p, i);
        if (!one.holds(one.pair(p, i)) || other.holds(i) || other.holds(there)) continue;
        const auto first_of_pair = one.sites().find(p);
        fmt::print("{} {}  after the {}  ({})\n", sign, site_line(site),
                   first_of_pair == one.sites().end() ? "?" : site_line(first_of_pair->second),
                   there.made == 0 ? "never executed there" : "split there");
        differ = true;
      }
    }
  };
  only_in(*a, *b, '-');
  only_in(*b, *a, '+');
  return differ ? kFindings : kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("-n,--runs", options->learn.runs, "runs to make, each under the next seed")
      ->capture_default_str();
  app.add_option("--until-stable", options->learn.until_stable,
                 "stop when this many passing runs in a row dropped no invariant; 0: make all runs")
      ->capture_default_str();
  app.add_option("--threshold", options->learn.threshold,
                 "keep an invariant that at most this many passing runs split: for tests that let "
                 "some wrong runs pass")
      ->capture_default_str();
  app.add_option(
         "--pass", options->learn.judge,
         "shell command that decides whether a run passed: it reads the run's output, finds "
         "its exit status in HEDDLE_STATUS, and returns 0 for yes")
      ->type_name("COMMAND");
  app.add_option("-o,--output", options->output, "the learned file (default: PROGRAM.inv)");
  app.add_flag("--add", options->add, "add to what the learned file holds already");
  app.add_option("--seed", options->learn.first_seed, "of the first run")->capture_default_str();
  options->schedule.declare(app, "random", "shared", 60, false);
  app.add_option("--granule", options->learn.granule, "bytes that are one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 64}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", options->quiet, "say nothing when all is well");
  app.add_option("command", options->learn.request.command, "the program and its arguments");
  app.positionals_at_end();

  CLI::App* merge = app.add_subcommand("merge", "joins learned files of one program");
  merge->add_option("files", options->files, "learned files")->required();
  merge->add_option("-o,--output", options->merge_output, "where the result goes")->required();
  CLI::App* show = app.add_subcommand("show", "prints what was learned, from what");
  show->add_option("file", options->files, "learned file")->required()->expected(1);
  show->add_flag("--all", options->all, "list the invariants too");
  CLI::App* diff = app.add_subcommand("diff", "prints the invariants that only one file has");
  diff->add_option("files", options->files, "two learned files")->required()->expected(2);
  app.require_subcommand(0, 1);
  return [options, merge, show, diff] {
    if (merge->parsed()) return run_merge(*options);
    if (show->parsed()) return run_show(*options);
    if (diff->parsed()) return run_diff(*options);
    return run_learn(*options);
  };
}

}  // namespace

const Verb kLearnVerb = {
    .name = "learn",
    .summary = "Learns from passing runs which accesses are never split",
    .description =
        "Runs a program under one schedule after the other and learns, from the runs that pass, "
        "which pairs of accesses to the same memory are never split by an access of another thread "
        "in a way that no serial order explains (AVIO's access-interleaving invariants). Later "
        "runs "
        "are judged by them: heddle check TRACE --detect avio --invariants app.inv. Files learned "
        "on "
        "several machines can be merged in any order; a run counts once.",
    .example =
        "heddle learn -n 100 --until-stable 20 -o app.inv -- ./app --test\n"
        "heddle learn -o app.inv --pass 'grep -q \"all good\"' -- ./app\n"
        "heddle learn merge a.inv b.inv -o app.inv\n"
        "heddle learn show app.inv\n"
        "heddle learn diff before.inv after.inv",
    .declare = declare,
};

}  // namespace heddle::cli
