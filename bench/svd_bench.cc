// What SVD costs end to end: the kernels natively and under Heddle with the detector attached, in
// one run.
//
//   heddle_bench_svd FOLDER [--quick | --medium] [--repeat N] [--threads N] [KERNEL…]
//
// FOLDER holds kernel_NAME.native and .heddle (target heddle_bench_kernels). --medium is about a
// tenth of the kernels' full work. Every ratio is CPU time (user and system, of the program and of
// its collector) to the native program's in the same run, the least of N runs:
//
//   decode   flow level; the collector finds every record's segment and drops it
//   svd      flow level, svd attached to the collector
//
// Memory is the peak of the program plus the peak of the collector; the bar is four times the
// native program's own plus 200 MB.
#include "collect/launch.h"
#include "collect/session.h"
#include "detect/svd/svd.h"
#include "measured_process.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace heddle;
using namespace heddle::bench;

// Runs the command under a collector and hands every batch of its executions to `consume`.
int run_collected(const Command& command,
                  const std::function<void(const Catalog&, const ExecutionBatch&)>& consume) {
  collect::LaunchOptions options;
  options.command = command;
  options.runtime.emplace_back("level", "flow");
  int start_status = 0;
  Result<std::unique_ptr<collect::Launch>> launch = collect::Launch::start(options, &start_status);
  if (!launch.ok()) return 1;
  Result<std::unique_ptr<collect::Session>> session = (*launch)->next_session();
  if (!session.ok() || *session == nullptr) return 1;
  for (;;) {
    const ExecutionBatch batch = (*session)->next_executions();
    if (batch.empty()) break;
    consume((*session)->catalog(), batch);
  }
  return collect::shell_status((*launch)->wait());
}

int decode_only(const Command& command, Report& report) {
  return run_collected(command, [&](const Catalog&, const ExecutionBatch& batch) {
    for (const Execution& execution : batch.executions) {
      if (execution.shape == 0) continue;
      const RecordShape& shape = *batch.shapes[execution.shape];
      report.accesses += shape.kind == RecordShape::Kind::kLoop ? accesses_of_loop(shape, execution)
                                                                : shape.items.size();
    }
    for (const Event& event : batch.events) report.accesses += is_access(event.kind) ? 1 : 0;
  });
}

int with_svd(const Command& command, Report& report) {
  std::optional<svd::SvdDetector> detector;
  const int status =
      run_collected(command, [&](const Catalog& catalog, const ExecutionBatch& batch) {
        if (!detector.has_value()) detector.emplace(catalog, svd::OnlineOptions());
        report.events = detector->on_executions(batch, report.events);
      });
  if (detector.has_value()) report.findings = detector->finish().size();
  return status;
}

// Sizes that take 20 to 100 ms natively.
std::string medium_size(const std::string& kernel) {
  static const std::map<std::string, std::string> sizes = {
      {"barnes", "2500"}, {"bfs", "200000"},   {"fft", "262144"},  {"hashmap", "800000"},
      {"list", "150000"}, {"lu", "512"},       {"queue", "60000"}, {"radix", "2000000"},
      {"stencil", "600"}, {"words", "250000"},
  };
  const auto known = sizes.find(kernel);
  return known == sizes.end() ? "" : known->second;
}

struct Row {
  double decode = 0;
  double svd = 0;
};

std::optional<Row> measure_kernel(const Arguments& options, const std::string& name) {
  const auto command = [&](const char* variant) {
    Command words = options.command(name, variant);
    const bool medium = options.switches.contains("--medium");
    if (medium && !medium_size(name).empty()) words.push_back(medium_size(name));
    return words;
  };
  const auto native =
      best(std::max(options.repeat, 3u), [&](Report&) { return run_plainly(command("native")); });
  const auto decoded =
      best(options.repeat, [&](Report& report) { return decode_only(command("heddle"), report); });
  const auto svd =
      best(options.repeat, [&](Report& report) { return with_svd(command("heddle"), report); });
  if (!native || !decoded || !svd) return std::nullopt;
  const Row row{decoded->seconds / native->seconds, svd->seconds / native->seconds};
  const double own = static_cast<double>(native->report.child_kilobytes) / 1024;
  const double peak =
      static_cast<double>(svd->report.own_kilobytes + svd->report.child_kilobytes) / 1024;
  fmt::print(
      "{:10} {:8.3f} s {:7.1f} {:7.1f} {:7.0f} MB {:7.0f} MB {:>5} {:7.1f} ns  {} findings\n", name,
      native->seconds, row.decode, row.svd, own, peak, peak <= 4 * own + 200 ? "ok" : "over",
      (svd->seconds - decoded->seconds) * 1e9 /
          static_cast<double>(std::max<std::uint64_t>(decoded->report.accesses, 1)),
      svd->report.findings);
  std::fflush(stdout);
  return row;
}

int usage() {
  fmt::print(stderr,
             "usage: heddle_bench_svd FOLDER [--quick | --medium] [--repeat N] [--threads N] "
             "[KERNEL...]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> options = parse(argc, argv, 1, {"--medium"});
  if (!options.has_value()) return usage();
  fmt::print("{:10} {:>10} {:>7} {:>7} {:>10} {:>10} {:>5} {:>10}\n", "kernel", "native", "decode",
             "svd", "own", "peak", "", "per access");
  Row logs;
  unsigned rows = 0;
  bool failed = false;
  for (const std::string& kernel : options->kernels) {
    const std::optional<Row> row = measure_kernel(*options, kernel);
    if (!row.has_value()) {
      fmt::print("{:10} failed\n", kernel);
      failed = true;
      continue;
    }
    logs.decode += std::log(row->decode);
    logs.svd += std::log(row->svd);
    ++rows;
  }
  if (rows == 0) return 1;
  fmt::print("{:10} {:>10} {:7.1f} {:7.1f}\n", "mean", "", std::exp(logs.decode / rows),
             std::exp(logs.svd / rows));
  return failed ? 1 : 0;
}
