#include "table/panel.h"

#include "detect/registry.h"
#include "table/marks.h"

#include <fmt/format.h>

namespace heddle::table {
const char* name_in_paper(const std::string& detector) {
  return detector == "race" ? "happens-before" : detector.c_str();
}

Panel::Panel(const Catalog& catalog, const avio::Invariants& learned) : log_(catalog) {
  for (const char* const name : kDetectors) {
    DetectorSettings settings;
    settings.invariants = &learned;
    Result<std::vector<std::unique_ptr<Detector>>> made = make_detectors(name, catalog, settings);
    HEDDLE_CHECK(made.ok());
    detectors_[name] = std::move(made->front());
  }
  svd_ = dynamic_cast<svd::SvdDetector*>(detectors_["svd"].get());
  HEDDLE_CHECK(svd_ != nullptr);
}

void Panel::on(std::span<const Event> batch, EventOrdinal first) {
  for (auto& [name, detector] : detectors_) detector->on(batch, first);
  log_.on(batch, first);
  for (const Event& event : batch) {
    accesses_ += is_access(event.kind) ? 1 : 0;
    segments_ += event.kind == EventKind::kSegment ? 1 : 0;
  }
}

std::vector<Finding> Panel::finish() {
  for (auto& [name, detector] : detectors_) findings_[name] = detector->finish();
  return {};
}

Classes::Classes(const Catalog& catalog, std::span<const avio::Invariants> learned) {
  for (const avio::Invariants& invariants : learned) {
    detectors_.push_back(
        std::make_unique<avio::Avio>(catalog, avio::Options{.invariants = &invariants}));
  }
}

void Classes::on(std::span<const Event> batch, EventOrdinal first) {
  for (const auto& detector : detectors_) detector->on(batch, first);
}

std::vector<std::set<std::string>> Classes::take_findings() {
  std::vector<std::set<std::string>> out;
  for (const auto& detector : detectors_) {
    std::set<std::string>& found = out.emplace_back();
    for (const Finding& finding : detector->finish()) found.insert(identity(finding));
  }
  return out;
}

}  // namespace heddle::table
