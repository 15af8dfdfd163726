// How fast traces are written and read. Every measurement runs in a process of its own, so that its
// peak memory is its own too; rates are per second of CPU time of one core.
//
//   heddle_bench_trace [million accesses]        prints the table; 100 if not given
#include "base/check.h"
#include "synthetic_program.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

namespace heddle::bench {
namespace {

double cpu_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double peak_megabytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <typename T>
T need(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(2);
  }
  return *std::move(result);
}

struct Workload {
  const char* name;
  const char* about;
  SyntheticOptions options;
};

const Workload kWorkloads[] = {
    {"regular", "plain accesses, 1 in 50 anywhere", {.irregular_percent = 2}},
    {"mixed", "plain accesses, 1 in 10 anywhere", {}},
    {"irregular", "plain accesses, 1 in 2 anywhere", {.irregular_percent = 50}},
    {"ping-pong", "as mixed, any thread after every iteration", {.turn = 8}},
    {"flow", "segments and accesses, 1 in 10 anywhere", {.segments = true}},
};

// What a measurement hands to the process that prints the table.
struct Outcome {
  double seconds = 0;
  double megabytes = 0;
  unsigned long long accesses = 0;
  unsigned long long events = 0;
};

Outcome write(const Workload& workload, const std::string& path, std::uint64_t accesses) {
  SyntheticProgram program(workload.options);
  auto writer = need(TraceWriter::create(path, program.catalog()));
  std::vector<Event> events;
  Outcome outcome;
  while (outcome.accesses < accesses) {
    program.make(events, 16384);
    for (const Event& event : events) outcome.accesses += is_access(event.kind);
    outcome.events += events.size();
    const double start = cpu_seconds();
    need(writer->add(events));
    outcome.seconds += cpu_seconds() - start;
  }
  const double start = cpu_seconds();
  need(writer->finish());
  outcome.seconds += cpu_seconds() - start;
  outcome.megabytes = peak_megabytes();
  return outcome;
}

// Events of the mixed workload as lines of STD, over some hundred thousand variables.
Outcome write_std(const std::string& path, std::uint64_t lines) {
  SyntheticProgram program({});
  std::FILE* file = std::fopen(path.c_str(), "w");
  HEDDLE_CHECK(file != nullptr);
  std::vector<Event> events;
  std::string text;
  Outcome outcome;
  const double start = cpu_seconds();
  while (outcome.events < lines) {
    program.make(events, 16384);
    text.clear();
    for (const Event& event : events) {
      fmt::format_to(std::back_inserter(text), "T{}|{}(V{})|{}\n", event.thread,
                     is_write(event.kind) ? 'w' : 'r', event.address / 8 % 200'003, event.site);
    }
    HEDDLE_CHECK(std::fwrite(text.data(), 1, text.size(), file) == text.size());
    outcome.events += events.size();
  }
  HEDDLE_CHECK(std::fclose(file) == 0);
  outcome.accesses = outcome.events;
  outcome.seconds = cpu_seconds() - start;
  outcome.megabytes = peak_megabytes();
  return outcome;
}

Outcome read(const std::string& path) {
  const double start = cpu_seconds();
  auto source = need(open_trace(path));
  Outcome outcome;
  std::uint64_t sum = 0;
  while (true) {
    const std::span<const Event> events = need(source->next());
    if (events.empty()) break;
    outcome.events += events.size();
    for (const Event& event : events) {
      outcome.accesses += is_access(event.kind);
      sum += event.address;
    }
  }
  outcome.seconds = cpu_seconds() - start;
  outcome.megabytes = peak_megabytes();
  if (sum == 0) fmt::print(stderr, "no addresses\n");
  return outcome;
}

void report(const Outcome& outcome) {
  fmt::print("{} {} {} {}\n", outcome.seconds, outcome.megabytes, outcome.accesses, outcome.events);
}

Outcome in_own_process(const std::string& arguments) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::FILE* pipe = ::popen(("'" + self + "' " + arguments).c_str(), "r");
  HEDDLE_CHECK(pipe != nullptr);
  Outcome outcome;
  const int got = std::fscanf(pipe, "%lf %lf %llu %llu", &outcome.seconds, &outcome.megabytes,
                              &outcome.accesses, &outcome.events);
  if (::pclose(pipe) != 0 || got != 4) {
    fmt::print(stderr, "the measurement `{}` failed\n", arguments);
    std::exit(2);
  }
  return outcome;
}

void row(const char* name, const char* what, const Outcome& outcome, std::uint64_t bytes) {
  fmt::print("{:<10} {:<6} {:>8.1f} {:>10.2f} {:>12.1f} {:>10.1f}\n", name, what,
             static_cast<double>(outcome.events) / 1e6, outcome.seconds,
             static_cast<double>(outcome.events) / 1e6 / outcome.seconds, outcome.megabytes);
  if (bytes != 0) {
    fmt::print("{:<10} {:<6} {:.1f} MB, {:.3f} bytes per access\n", "", "file",
               static_cast<double>(bytes) / 1e6,
               static_cast<double>(bytes) / static_cast<double>(outcome.accesses));
  }
}

void table(std::uint64_t millions) {
  std::string dir = (std::filesystem::temp_directory_path() / "heddle-bench-XXXXXX").string();
  HEDDLE_CHECK(::mkdtemp(dir.data()) != nullptr);
  const std::string path = dir + "/bench.heddle";
  fmt::print("{:<10} {:<6} {:>8} {:>10} {:>12} {:>10}\n", "trace", "", "M events", "CPU s",
             "M events/s", "peak MB");
  for (std::size_t i = 0; i < std::size(kWorkloads); ++i) {
    const Workload& workload = kWorkloads[i];
    const Outcome written = in_own_process(fmt::format("--write {} '{}' {}", i, path, millions));
    row(workload.name, "write", written, std::filesystem::file_size(path));
    row(workload.name, "read", in_own_process(fmt::format("--read '{}'", path)), 0);
  }
  // Fewer lines: the text is long.
  const std::string text = dir + "/bench.std";
  in_own_process(fmt::format("--write-std '{}' {}", text, (millions + 4) / 5));
  row("STD", "read", in_own_process(fmt::format("--read '{}'", text)), 0);
  std::filesystem::remove_all(dir);
  fmt::print("\n");
  for (const Workload& workload : kWorkloads) {
    fmt::print("{}: {}\n", workload.name, workload.about);
  }
  fmt::print("STD: as mixed, lines of text, 200,003 variables\n");
  fmt::print("{} threads, {} loops of 3 to 8 sites\n", kWorkloads[0].options.threads,
             kWorkloads[0].options.loops);
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  using namespace heddle::bench;
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 10); };
  if (argc == 5 && std::strcmp(argv[1], "--write") == 0) {
    report(write(kWorkloads[number(argv[2])], argv[3], number(argv[4]) * 1'000'000));
  } else if (argc == 4 && std::strcmp(argv[1], "--write-std") == 0) {
    report(write_std(argv[2], number(argv[3]) * 1'000'000));
  } else if (argc == 3 && std::strcmp(argv[1], "--read") == 0) {
    report(read(argv[2]));
  } else {
    table(argc == 2 ? number(argv[1]) : 100);
  }
  return 0;
}
