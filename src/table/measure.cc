#include "table/measure.h"

#include "hunt/observed_run.h"
#include "hunt/try_seeds.h"
#include "table/marks.h"
#include "table/native_run.h"

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::table {
namespace {

constexpr unsigned kTimeout = 60;  // seconds of a run, on a machine that is busy

std::vector<std::pair<std::string, std::string>> runtime_options(std::uint64_t seed,
                                                                 const char* level) {
  return {{"schedule", "random"},
          {"points", kPoints},
          {"seed", std::to_string(seed)},
          {"level", level}};
}

class Nowhere {
 public:
  Nowhere() : fd_(open("/dev/null", O_RDWR | O_CLOEXEC)) {}
  Nowhere(const Nowhere&) = delete;
  Nowhere& operator=(const Nowhere&) = delete;
  ~Nowhere() { close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

template <typename D>
Result<hunt::ObservedEnd> observe(const Place& place, const Program& program, std::uint64_t seed,
                                  const char* level,
                                  const std::function<std::unique_ptr<D>(const Catalog&)>& make,
                                  const std::function<void(D&)>& done) {
  const Nowhere nowhere;
  hunt::ObserveRequest request;
  request.command = {place.programs + "/" + program.name};
  request.runtime = runtime_options(seed, level);
  request.timeout = kTimeout;
  request.output_fd = nowhere.fd();
  Result<hunt::ObservedEnd> end = hunt::observe(
      request, [&](const Catalog& catalog) -> std::unique_ptr<Detector> { return make(catalog); },
      [&](Detector& detector, const Catalog&) { done(static_cast<D&>(detector)); });
  if (!end.ok()) return end;
  if (!end->instrumented) {
    return Error{
        fmt::format("{}: no access was seen; build it with heddle-c++", request.command[0])};
  }
  return end;
}

hunt::TryOptions campaign(const Place& place, const Program& program, const char* strategy,
                          std::uint64_t first) {
  hunt::TryOptions out;
  out.request.command = {place.programs + "/" + program.name};
  out.request.runtime = {{"points", kPoints}, {"level", "off"}};
  out.request.timeout = kTimeout;
  out.strategy = strategy;
  out.first_seed = first;
  out.processes = 1;  // programs are measured side by side already
  out.keep = 0;
  return out;
}

Result<std::uint64_t> scheduling_points(const Place& place, const Program& program) {
  hunt::RunRequest request = campaign(place, program, "fifo", 1).request;
  request.runtime.emplace_back("schedule", "fifo");
  Result<hunt::StatusPage> page = hunt::StatusPage::make();
  if (!page.ok()) return page.error();
  const Result<hunt::RunReport> report = hunt::run_controlled(request, *page);
  if (!report.ok()) return report.error();
  return std::max<std::uint64_t>(report->points, 1);
}

Result<Hunt> hunt_failures(const Place& place, const Program& program, const char* strategy,
                           const Budget& budget) {
  // pct is told how long a run is; a first one shows it.
  const Result<std::uint64_t> length = scheduling_points(place, program);
  if (!length.ok()) return length.error();
  Hunt out;
  for (unsigned i = 0; i < budget.hunts; ++i) {
    hunt::TryOptions options =
        campaign(place, program, strategy, kHuntSeed + std::uint64_t{i} * budget.hunt_limit);
    options.runs = budget.hunt_limit;
    options.until_failure = true;
    options.request.runtime.emplace_back("pct_length", std::to_string(*length));
    const Result<hunt::TryResult> tried = hunt::try_seeds(options, {});
    if (!tried.ok()) return tried.error();
    if (tried->failures.empty()) {
      ++out.gave_up;
    } else {
      out.schedules.push_back(static_cast<unsigned>(tried->runs));
    }
  }
  std::sort(out.schedules.begin(), out.schedules.end());
  return out;
}

std::string log_identity(const svd::LogGroup& group) {
  return fmt::format("{}:{} {}:{} {}:{}", group.read.place.line, group.read.place.column,
                     group.remote.place.line, group.remote.place.column, group.local.place.line,
                     group.local.place.column);
}

void add_svd_facts(const Panel& panel, const Marks& marks, SvdFacts* out) {
  out->accesses += panel.accesses();
  out->segments += panel.segments();
  out->units += panel.units();
  out->log_entries += panel.log().entries();
  for (const svd::LogGroup& group : panel.log().groups()) {
    out->log_groups.insert(log_identity(group));
    if (group.local.role.empty()) continue;  // the thread never wrote it itself
    Finding entry;
    entry.steps = {group.read, group.remote, group.local};
    out->log_names_bug = out->log_names_bug || marks.is_the_bug(entry);
  }
}

}  // namespace

Result<Taught> train(const Place& place, const Program& program, const std::vector<unsigned>& stops,
                     unsigned limit) {
  Taught out;
  avio::Invariants learned(program.name);
  for (unsigned run = 0; run < limit && out.passed < stops.back(); ++run) {
    const std::uint64_t seed = kTrainingSeed + run;
    avio::RunText text;
    text.seed = std::to_string(seed);
    avio::RunEvidence evidence;
    const Result<hunt::ObservedEnd> end = observe<avio::Avio>(
        place, program, seed, "accesses",
        [](const Catalog& catalog) {
          return std::make_unique<avio::Avio>(catalog, avio::Options{.learn = true});
        },
        [&](avio::Avio& avio) { evidence = avio.evidence(); });
    if (!end.ok()) return end.error();
    if (!end->passed()) continue;
    learned.add(evidence.id(text), text, evidence);
    ++out.passed;
    if (out.passed == stops[out.after.size()]) out.after.push_back(learned);
  }
  while (out.after.size() < stops.size()) out.after.push_back(learned);
  return out;
}

Status judge_run(const Place& place, const Program& program, const avio::Invariants& learned,
                 std::uint64_t seed, Measured* out) {
  const Result<Marks> marks = Marks::read(place.examples + "/" + program.source);
  if (!marks.ok()) return marks.error();
  const Result<hunt::ObservedEnd> end = observe<Panel>(
      place, program, seed, "flow",
      [&](const Catalog& catalog) { return std::make_unique<Panel>(catalog, learned); },
      [&](Panel& panel) {
        panel.finish();
        add_svd_facts(panel, *marks, &out->svd);
        for (const auto& [name, findings] : panel.findings()) {
          Judged& judged = out->detectors[name];
          bool found = false;
          for (const Finding& finding : findings) {
            if (marks->is_the_bug(finding)) {
              found = true;
              judged.the_bug.insert(identity(finding));
              judged.dynamic_true += finding.count;
            } else {
              const bool is_new =
                  judged.false_alarms.emplace(identity(finding), subject(finding)).second;
              judged.one_line_only += is_new && in_one_line_only(finding) ? 1 : 0;
              judged.dynamic_false += finding.count;
            }
          }
          judged.found += found ? 1 : 0;
        }
      });
  if (!end.ok()) return end.error();
  ++out->judged;
  if (end->passed() == out->judged_fail) {
    return Error{
        fmt::format("{}: seed {} {}; a seed belongs to one build of a program, heddle_table "
                    "update finds another",
                    program.name, seed, end->passed() ? "passes" : "fails")};
  }
  return Done{};
}

Result<std::vector<std::uint64_t>> failing_seeds(const Place& place, const Program& program,
                                                 std::uint64_t first, unsigned count,
                                                 unsigned limit) {
  std::vector<std::uint64_t> out;
  for (unsigned tried = 0; tried < limit && out.size() < count;) {
    hunt::TryOptions options = campaign(place, program, "random", first + tried);
    options.runs = limit - tried;
    options.until_failure = true;
    const Result<hunt::TryResult> result = hunt::try_seeds(options, {});
    if (!result.ok()) return result.error();
    tried += static_cast<unsigned>(result->runs);
    if (!result->failures.empty()) out.push_back(result->failures.front().seed);
  }
  return out;
}

Result<Measured> measure(const Place& place, const Program& program, const Budget& budget) {
  const auto start = std::chrono::steady_clock::now();
  Measured out;
  out.name = program.name;

  std::vector<unsigned> stops;
  for (const unsigned stop : kCurve) {
    if (stop < budget.training) stops.push_back(stop);
  }
  stops.push_back(budget.training);
  const Result<Taught> taught = train(place, program, stops, budget.training_limit);
  if (!taught.ok()) return taught.error();
  out.trained = taught->passed;

  std::vector<std::uint64_t> seeds;
  if (program.fails()) {
    const Result<std::vector<std::uint64_t>> failing = failing_seeds(
        place, program, kJudgedSeed, budget.judged, budget.judged * budget.hunt_limit);
    if (!failing.ok()) return failing.error();
    seeds = *failing;
  } else {
    for (unsigned i = 0; i < budget.judged; ++i) seeds.push_back(kJudgedSeed + i);
  }
  out.judged_fail = program.fails();
  for (const std::uint64_t seed : seeds) {
    const Status status = judge_run(place, program, taught->after.back(), seed, &out);
    if (!status.ok()) return status.error();
  }

  if (!program.bug) {
    std::vector<std::set<std::string>> alarms(stops.size());
    for (const std::uint64_t seed : seeds) {
      const Result<hunt::ObservedEnd> end = observe<Classes>(
          place, program, seed, "accesses",
          [&](const Catalog& catalog) { return std::make_unique<Classes>(catalog, taught->after); },
          [&](Classes& classes) {
            std::vector<std::set<std::string>> found = classes.take_findings();
            for (std::size_t i = 0; i < alarms.size(); ++i) alarms[i].merge(found[i]);
          });
      if (!end.ok()) return end.error();
    }
    for (const auto& found : alarms) out.curve.push_back(static_cast<unsigned>(found.size()));
  }

  Result<std::optional<Instructions>> counted =
      count_instructions(place.native_program(program.name));
  if (!counted.ok()) return counted.error();
  out.native = *counted;

  if (program.fails()) {
    Result<Hunt> random = hunt_failures(place, program, "random", budget);
    if (!random.ok()) return random.error();
    Result<Hunt> pct = hunt_failures(place, program, "pct", budget);
    if (!pct.ok()) return pct.error();
    out.random = std::move(*random);
    out.pct = std::move(*pct);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

Result<unsigned> native_failures(const Place& place, const Program& program, unsigned runs) {
  unsigned failed = 0;
  for (unsigned run = 0; run < runs; ++run) {
    const Result<int> status = native_run({place.native_program(program.name)}, kTimeout);
    if (!status.ok()) return status.error();
    failed += WIFEXITED(*status) && WEXITSTATUS(*status) == 0 ? 0 : 1;
  }
  return failed;
}

}  // namespace heddle::table
