#include "cli/replay_finding.h"

#include "finding/merge.h"
#include "hunt/access_position.h"

#include <algorithm>
#include <charconv>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

// The detectors of the first process; those of its children hear nothing.
class FirstProcess final : public Detector {
 public:
  explicit FirstProcess(Detection::Set detectors) : set_(std::move(detectors)) {}
  void on(std::span<const Event> batch, EventOrdinal first) override {
    for (const auto& detector : set_.detectors) detector->on(batch, first);
  }
  std::vector<Finding> finish() override { return finish_all(set_.detectors); }

 private:
  Detection::Set set_;
};

class Deaf final : public Detector {
 public:
  void on(std::span<const Event>, EventOrdinal) override {}
  std::vector<Finding> finish() override { return {}; }
};

Result<std::vector<Finding>> findings_of(const hunt::ObserveRequest& request,
                                         const Detection& detection) {
  std::vector<Finding> findings;
  bool first = true;
  bool finished = false;
  const Result<hunt::ObservedEnd> end = hunt::observe(
      request,
      [&](const Catalog& catalog) -> std::unique_ptr<Detector> {
        if (!first) return std::make_unique<Deaf>();
        first = false;
        return std::make_unique<FirstProcess>(detection.make(catalog));
      },
      [&](Detector& detector, const Catalog&) {
        std::vector<Finding> found = detector.finish();
        if (!finished) findings = std::move(found);
        finished = finished || !findings.empty();
      });
  if (!end.ok()) return end.error();
  return merge_findings(std::move(findings));
}

// By fingerprint, or else by number.
Result<Finding> choose(const std::vector<Finding>& findings, const std::string& wanted,
                       const std::string& detectors) {
  if (findings.empty()) {
    return Error{
        fmt::format("nothing found by {} in this run; --detect names other detectors", detectors)};
  }
  for (const Finding& finding : findings) {
    if (wanted.size() >= 4 && finding.fingerprint.starts_with(wanted)) return finding;
  }
  std::size_t number = 0;
  const char* end = wanted.data() + wanted.size();
  const auto parsed = std::from_chars(wanted.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= 1 && number <= findings.size()) {
    return findings[number - 1];
  }
  return Error{
      fmt::format("no finding {}: {} found {} in this run", wanted, detectors, findings.size())};
}

bool is_end(FindingKind kind) {
  return kind == FindingKind::kDeadlock || kind == FindingKind::kHang ||
         kind == FindingKind::kCrash;
}

// Accesses of the finding, the one that completes it first; context comes last.
std::vector<const Step*> accesses_of(const Finding& finding) {
  std::vector<const Step*> steps;
  for (const Step& step : finding.steps) {
    if (is_access(step.kind) && step.ordinal != kNoEvent) steps.push_back(&step);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step* a, const Step* b) {
    return std::pair(!a->role.empty(), a->ordinal) > std::pair(!b->role.empty(), b->ordinal);
  });
  return steps;
}

std::string headline(const Finding& finding) {
  std::string text(title(finding.kind));
  if (!finding.variables.empty()) text += fmt::format(" on `{}`", finding.variables[0].name);
  return text;
}

}  // namespace

Result<FindingPlace> find_finding(const FindingSearch& search) {
  const Result<Detection> detection = Detection::load(search.detection);
  if (!detection.ok()) return detection.error();
  hunt::ObserveRequest request;
  request.command = search.command;
  request.runtime = search.runtime;
  request.runtime.emplace_back("level", detection->level());
  request.timeout = search.timeout;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  request.output_fd = nowhere;

  const auto find = [&]() -> Result<FindingPlace> {
    const Result<std::vector<Finding>> findings = findings_of(request, *detection);
    if (!findings.ok()) return findings.error();
    const Result<Finding> finding = choose(*findings, search.wanted, detection->names());
    if (!finding.ok()) return finding.error();
    FindingPlace place;
    if (is_end(finding->kind)) {
      place.what = headline(*finding) + ": where the run ends";
      place.at_end = true;
      return place;
    }
    for (const Step* step : accesses_of(*finding)) {
      const auto position = hunt::find_access(request, step->thread, step->ordinal);
      if (!position.ok()) continue;
      place.what = fmt::format("{}: thread {} before {}:{}", headline(*finding), step->thread,
                               step->place.file, step->place.line);
      place.stop_access = position->stop_access();
      place.stop_sites = position->stop_sites();
      return place;
    }
    return Error{
        fmt::format("{}: none of its accesses can be stopped at; use --at", headline(*finding))};
  };
  Result<FindingPlace> place = find();
  if (nowhere >= 0) close(nowhere);
  return place;
}

}  // namespace heddle::cli
