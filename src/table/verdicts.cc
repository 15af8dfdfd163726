#include "table/verdicts.h"

#include <fmt/format.h>

namespace heddle::table {
namespace {

constexpr unsigned kTrainingRuns = 25;
constexpr unsigned kTrainingLimit = 100;
constexpr unsigned kJudgedRuns = 3;

// What the hardware model says comes from what shares a line and from what is displaced, and so
// from addresses, which are others in every process and every build. Where expected.json gives that
// as the reason, either verdict is right; and a false alarm need not come again.
bool depends_on_addresses(const Program& program, const std::string& detector, bool verdict) {
  if (detector != "avio-h") return false;
  return program.why.contains(detector) || (!program.bug && !verdict);
}

}  // namespace

Result<Measured> quick_measure(const Place& place, const Program& program) {
  Measured measured;
  measured.name = program.name;
  measured.judged_fail = program.fails();
  const Result<Taught> taught = train(place, program, {kTrainingRuns}, kTrainingLimit);
  if (!taught.ok()) return taught.error();

  std::vector<std::uint64_t> seeds = program.seeds;
  if (program.fails()) {
    if (seeds.empty()) {
      return Error{fmt::format("{}: no seed is stored that makes it fail", program.name)};
    }
  } else {
    for (unsigned i = 0; i < kJudgedRuns; ++i) seeds.push_back(kJudgedSeed + i);
  }
  for (const std::uint64_t seed : seeds) {
    const Status status = judge_run(place, program, taught->after.back(), seed, &measured);
    if (!status.ok()) return status.error();
  }
  return measured;
}

Verdicts verdicts_of(const Program& program, const Measured& measured) {
  Verdicts out;
  for (const auto& [detector, judged] : measured.detectors) {
    out[detector] = program.bug ? judged.found > 0 : !judged.false_alarms.empty();
  }
  return out;
}

std::vector<std::string> compare(const Program& program, const Verdicts& measured) {
  const char* const yes = program.bug ? "finds the bug" : "reports something";
  const char* const no = program.bug ? "does not find the bug" : "is silent";
  std::vector<std::string> out;
  for (const auto& [detector, verdict] : measured) {
    const auto known = program.heddle.find(detector);
    if (known == program.heddle.end()) {
      out.push_back(fmt::format("{}: expected.json has no verdict of {}", program.name, detector));
    } else if (known->second != verdict && !depends_on_addresses(program, detector, verdict)) {
      out.push_back(fmt::format("{}: {} {}, expected.json says that it {}", program.name, detector,
                                verdict ? yes : no, verdict ? no : yes));
    }
  }
  return out;
}

std::vector<std::string> unexplained(const Program& program) {
  std::vector<std::string> out;
  for (const auto& [detector, verdict] : program.heddle) {
    if (program.why.contains(detector)) continue;
    const auto paper = program.paper.find(name_in_paper(detector));
    if (paper != program.paper.end() && paper->second != verdict) {
      out.push_back(fmt::format("{}: {} differs from the paper, and no reason is given",
                                program.name, detector));
    } else if (!program.bug && verdict && paper == program.paper.end()) {
      out.push_back(fmt::format("{}: {} reports a correct program, and no reason is given",
                                program.name, detector));
    }
  }
  return out;
}

}  // namespace heddle::table
