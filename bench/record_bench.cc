// What recording costs: the kernels natively, under ThreadSanitizer and under Heddle, in one run.
//
//   heddle_bench_record FOLDER [--quick] [--repeat N] [--threads N] [--no-file] [KERNEL…]
//
// FOLDER holds kernel_NAME.native, .tsan and .heddle. Every number is CPU time (user and system, of
// the program and of its collector) as a ratio to the native program's in the same run, the least
// of N runs:
//
//   tsan     built with -fsanitize=thread
//   memory   access level, into a ring in the process that nobody reads
//   count    access level; every access to memory that several threads touch is delivered to a
//            consumer that counts
//   flow     flow level, to a file; with the bytes of the file per access
//
// The last line is the geometric mean.
#include "collect/launch.h"
#include "collect/shared_filter.h"
#include "collect/to_file.h"
#include "measured_process.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace heddle;
using namespace heddle::bench;

// Runs the command under a collector and hands its first session to `consume`.
int run_collected(const Command& command, const char* level,
                  const std::function<int(collect::Session&)>& consume) {
  collect::LaunchOptions options;
  options.command = command;
  options.runtime.emplace_back("level", level);
  int start_status = 0;
  Result<std::unique_ptr<collect::Launch>> launch = collect::Launch::start(options, &start_status);
  if (!launch.ok()) return 1;
  Result<std::unique_ptr<collect::Session>> session = (*launch)->next_session();
  if (!session.ok() || *session == nullptr) return 1;
  const int status = consume(**session);
  return status != 0 ? status : collect::shell_status((*launch)->wait());
}

class Count : public EventTaker {
 public:
  void on(std::span<const Event> batch, EventOrdinal) override {
    for (const Event& event : batch) accesses_ += is_access(event.kind) ? 1 : 0;
  }
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override {
    on(batch.events, first);
    for (std::size_t id = shapes_.size(); id < batch.shapes.size(); ++id) {
      const RecordShape* shape = batch.shapes[id];
      const bool loop = shape != nullptr && shape->kind == RecordShape::Kind::kLoop;
      shapes_.push_back(shape == nullptr ? 0 : loop ? kLoop : shape->items.size());
    }
    for (const Execution& execution : batch.executions) {
      const std::uint64_t items = shapes_[execution.shape];
      accesses_ += items == kLoop ? accesses_of_loop(*batch.shapes[execution.shape], execution)
                   : execution.items == Execution::kAll ? items
                                                        : bits_of(execution.items);
    }
    return first;  // nobody asks
  }
  std::uint64_t accesses() const { return accesses_; }

 private:
  static constexpr std::uint64_t kLoop = ~std::uint64_t{0};

  // They are few. (std::popcount is a call of a library where the oldest processors must be able to
  // run it.)
  static std::uint64_t bits_of(std::uint32_t items) {
    std::uint64_t count = 0;
    for (; items != 0; items &= items - 1) ++count;
    return count;
  }

  std::uint64_t accesses_ = 0;
  std::vector<std::uint64_t> shapes_;  // how many accesses an execution has, by ShapeId; or kLoop
};

int count(collect::Session& session, Report& report) {
  Count shared;
  Result<std::unique_ptr<collect::SharedFilter>> filter = collect::SharedFilter::create(shared);
  if (!filter.ok()) return 1;
  session.deliver_shared(**filter);
  report.passed = shared.accesses();
  report.accesses = (*filter)->accesses();
  if (report.accesses == 0) return 1;  // built by a compiler of another version, say
  return 0;
}

struct Row {
  double tsan = 0;
  double memory = 0;
  double count = 0;
  double flow = 0;
  double bytes_per_access = 0;
};

std::optional<Row> measure_kernel(const Arguments& options, const std::string& name) {
  const auto command = [&](const char* variant) { return options.command(name, variant); };
  const auto native = best(options.repeat, [&](Report&) { return run_plainly(command("native")); });
  const auto tsan = best(options.repeat, [&](Report&) { return run_plainly(command("tsan")); });
  const auto memory = best(options.repeat, [&](Report&) {
    setenv("HEDDLE_OPTIONS", "mode=memory:level=accesses", 1);
    return run_plainly(command("heddle"));
  });
  const auto counted = best(options.repeat, [&](Report& report) {
    return run_collected(command("heddle"), "accesses",
                         [&](collect::Session& session) { return count(session, report); });
  });
  if (!native || !tsan || !memory || !counted) return std::nullopt;
  const bool with_file = !options.switches.contains("--no-file");
  Row row;
  row.tsan = tsan->seconds / native->seconds;
  row.memory = memory->seconds / native->seconds;
  row.count = counted->seconds / native->seconds;
  if (with_file) {
    const fs::path path = fs::temp_directory_path() / fmt::format("heddle-bench-{}", getpid());
    const auto flow = best(1, [&](Report& report) {
      return run_collected(command("heddle"), "flow", [&](collect::Session& session) {
        const collect::ToFileResult result =
            collect::write_session(session, {.path = path.string()});
        report.bytes = result.bytes;
        return result.problem.empty() ? 0 : 1;
      });
    });
    std::error_code ignored;
    fs::remove(path, ignored);
    if (!flow) return std::nullopt;
    row.flow = flow->seconds / native->seconds;
    row.bytes_per_access =
        static_cast<double>(flow->report.bytes) / static_cast<double>(counted->report.accesses);
  }
  fmt::print(
      "{:10} {:8.3f} s {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:7.3f}   {} accesses, {:.0f} % shared\n",
      name, native->seconds, row.tsan, row.memory, row.count, row.flow, row.bytes_per_access,
      counted->report.accesses,
      100.0 * static_cast<double>(counted->report.passed) /
          static_cast<double>(std::max<std::uint64_t>(counted->report.accesses, 1)));
  std::fflush(stdout);
  return row;
}

int usage() {
  fmt::print(stderr,
             "usage: heddle_bench_record FOLDER [--quick] [--repeat N] [--threads N] [--no-file] "
             "[KERNEL...]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> options = parse(argc, argv, 3, {"--no-file"});
  if (!options.has_value()) return usage();
  const bool with_file = !options->switches.contains("--no-file");
  fmt::print("{:10} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "kernel", "native", "tsan", "memory",
             "count", "flow", "B/acc");
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
    logs.tsan += std::log(row->tsan);
    logs.memory += std::log(row->memory);
    logs.count += std::log(row->count);
    logs.flow += std::log(std::max(row->flow, 1e-9));
    logs.bytes_per_access += std::log(std::max(row->bytes_per_access, 1e-9));
    ++rows;
  }
  if (rows == 0) return 1;
  const auto mean = [rows](double log) { return std::exp(log / rows); };
  fmt::print("{:10} {:>10} {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:7.3f}\n", "mean", "", mean(logs.tsan),
             mean(logs.memory), mean(logs.count), with_file ? mean(logs.flow) : 0,
             with_file ? mean(logs.bytes_per_access) : 0);
  fmt::print("memory / tsan {:.2f}   count / tsan {:.2f}\n", mean(logs.memory - logs.tsan),
             mean(logs.count - logs.tsan));
  return failed ? 1 : 0;
}
