// determinism RUNS SEEDS COMMAND…
//
// Runs each COMMAND (a program, with arguments after blanks) RUNS times with one seed, recorded at
// the level of accesses: the sequence of (thread, site, kind) of all events must be the same every
// time. Then with SEEDS seeds: more than one sequence must come out, where threads can meet at all.
// A line per program; status 1 when one of them was not the same.
#include "hunt/observed_run.h"
#include "hunt/run_digest.h"

#include <algorithm>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

namespace heddle {
namespace {

struct Sample {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> processes;  // digest and events, sorted
  std::uint32_t sources = 0;
  std::string end;

  auto operator<=>(const Sample& other) const { return processes <=> other.processes; }
  bool operator==(const Sample& other) const { return processes == other.processes; }
  std::uint64_t events() const {
    std::uint64_t sum = 0;
    for (const auto& [digest, count] : processes) sum += count;
    return sum;
  }
};

Result<Sample> run_once(const std::string& command, std::uint64_t seed, int null) {
  hunt::ObserveRequest request;
  std::istringstream words(command);
  for (std::string word; words >> word;) request.command.push_back(word);
  const char* points = std::getenv("HEDDLE_TEST_POINTS");
  const char* schedule = std::getenv("HEDDLE_TEST_SCHEDULE");
  request.runtime = {{"schedule", schedule != nullptr ? schedule : "random"},
                     {"points", points != nullptr ? points : "shared"},
                     {"seed", std::to_string(seed)},
                     {"level", "accesses"}};
  request.timeout = 600;  // for a busy machine; nothing here waits for ever
  request.output_fd = null;
  Sample sample;
  const Result<hunt::ObservedEnd> end = hunt::observe(
      request, [](const Catalog& catalog) { return std::make_unique<hunt::RunDigest>(catalog); },
      [&](Detector& detector, const Catalog&) {
        auto& digest = static_cast<hunt::RunDigest&>(detector);
        sample.processes.emplace_back(digest.digest(), digest.events());
      });
  if (!end.ok()) return end.error();
  std::sort(sample.processes.begin(), sample.processes.end());
  sample.sources = end->status.sources;
  sample.end = describe(*end);
  return sample;
}

bool check(const std::string& command, int runs, int seeds, int null) {
  std::map<Sample, int> same;
  std::map<std::string, int> ends;
  std::uint32_t sources = 0;
  for (int i = 0; i < runs; ++i) {
    const Result<Sample> sample = run_once(command, 7, null);
    if (!sample.ok()) {
      fmt::print("FAILED {}: {}\n", command, sample.error().message);
      return false;
    }
    if (sample->events() <= 1) {  // how it ended
      fmt::print("FAILED {}: nothing was recorded; was it built with this version's compilers?\n",
                 command);
      return false;
    }
    sources |= sample->sources;
    ++same[*sample];
    ++ends[sample->end];
  }
  std::set<Sample> different;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Result<Sample> sample = run_once(command, static_cast<std::uint64_t>(seed), null);
    if (!sample.ok()) return false;
    different.insert(*sample);
  }
  int most = 0;
  for (const auto& [sample, count] : same) most = std::max(most, count);
  const std::string name = command.substr(command.rfind('/') + 1);
  std::string line =
      fmt::format("{:<24} {:>4} of {} the same, {} events; {} of {} seeds differ", name, most, runs,
                  same.begin()->first.events(), different.size(), seeds);
  for (const auto& [end, count] : ends) line += fmt::format("; {} × {}", count, end);
  if (sources != 0) line += fmt::format("; sources {:#x}", sources);
  fmt::print("{}{}\n", same.size() == 1 ? "" : "FAILED ", line);
  std::fflush(stdout);
  return same.size() == 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: determinism RUNS SEEDS COMMAND…\n");
    return 2;
  }
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  int failed = 0;
  for (int i = 3; i < argc; ++i) {
    if (!heddle::check(argv[i], std::atoi(argv[1]), std::atoi(argv[2]), null)) ++failed;
  }
  return failed == 0 ? 0 : 1;
}
