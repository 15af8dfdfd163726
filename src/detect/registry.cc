#include "detect/registry.h"

#include "detect/avio/avio.h"
#include "detect/avio/avio_h.h"
#include "detect/outcome/outcome.h"
#include "detect/race/frontier.h"
#include "detect/race/lockset.h"
#include "detect/race/race.h"
#include "detect/serializability/serializability.h"
#include "detect/svd/offline_detector.h"
#include "detect/svd/svd.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {
namespace {

template <typename T>
std::unique_ptr<Detector> make(const Catalog& catalog, const DetectorSettings&) {
  return std::make_unique<T>(catalog);
}

std::unique_ptr<Detector> make_avio(const Catalog& catalog, const DetectorSettings& settings) {
  return std::make_unique<avio::Avio>(
      catalog, avio::Options{.granule = settings.granule, .invariants = settings.invariants});
}

std::unique_ptr<Detector> make_avio_h(const Catalog& catalog, const DetectorSettings& settings) {
  return std::make_unique<avio::AvioH>(
      catalog, avio::HardwareOptions{
                   .l1 = settings.l1, .cores = settings.cores, .invariants = settings.invariants});
}

std::unique_ptr<Detector> make_frontier(const Catalog& catalog, const DetectorSettings& settings) {
  return std::make_unique<race::FrontierDetector>(catalog, settings.frontier);
}

std::unique_ptr<Detector> make_svd(const Catalog& catalog, const DetectorSettings& settings) {
  return std::make_unique<svd::SvdDetector>(catalog, settings.svd);
}

constexpr DetectorEntry kDetectors[] = {
    {"avio", "pairs of accesses split by another thread", make_avio},
    {"avio-h", "avio as bits of cache lines would see it, next to avio", make_avio_h},
    {"race", "data races by happens-before", make<race::RaceDetector>},
    {"lockset", "data that no lock protects at all accesses (Eraser)", make<race::LocksetDetector>},
    {"frontier", "data races by synchronisation that the user marked (FRD)", make_frontier},
    {"serializability", "declared transactions that no serial order explains",
     make<serializability::SerializabilityDetector>},
    {"svd", "serializability violations of inferred units (needs a trace with flow)", make_svd,
     Needs::kFlow},
    {"svd-offline", "the same by definition, in more memory", make<svd::OfflineDetector>,
     Needs::kFlow},
    {"outcome", "deadlocks, hangs, crashes and failed assertions", make<outcome::OutcomeDetector>,
     Needs::kSynchronisation},
};

std::string all_names() {
  std::vector<std::string_view> names;
  for (const DetectorEntry& entry : kDetectors) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const DetectorEntry* find_detector(std::string_view name) {
  const auto* const entry = std::find_if(std::begin(kDetectors), std::end(kDetectors),
                                         [&](const DetectorEntry& e) { return e.name == name; });
  return entry == std::end(kDetectors) ? nullptr : entry;
}

// Takes the first of a comma-separated list off it.
std::string_view take_name(std::string_view& names) {
  const std::string_view name = names.substr(0, names.find(','));
  names.remove_prefix(std::min(names.size(), name.size() + 1));
  return name;
}

}  // namespace

std::span<const DetectorEntry> detectors() {
  return kDetectors;
}

Result<std::vector<std::unique_ptr<Detector>>> make_detectors(std::string_view names,
                                                              const Catalog& catalog,
                                                              const DetectorSettings& settings) {
  std::vector<std::unique_ptr<Detector>> out;
  while (!names.empty()) {
    const std::string_view name = take_name(names);
    const DetectorEntry* const entry = find_detector(name);
    if (entry == nullptr) {
      return Error{fmt::format("there is no detector `{}`; there are {}", name, all_names())};
    }
    out.push_back(entry->make(catalog, settings));
  }
  if (out.empty()) return Error{fmt::format("no detector named; there are {}", all_names())};
  return out;
}

Needs needs_of(std::string_view names) {
  auto most = Needs::kSynchronisation;
  while (!names.empty()) {
    const DetectorEntry* const entry = find_detector(take_name(names));
    if (entry != nullptr) most = std::max(most, entry->needs);
  }
  return most;
}

Result<std::vector<Finding>> run_detectors(EventSource& source,
                                           std::span<const std::unique_ptr<Detector>> detectors) {
  EventOrdinal first = 0;
  while (true) {
    Result<std::span<const Event>> batch = source.next();
    if (!batch.ok()) return batch.error();
    if (batch->empty()) break;
    for (const std::unique_ptr<Detector>& detector : detectors) detector->on(*batch, first);
    first += batch->size();
  }
  return finish_all(detectors);
}

std::vector<Finding> finish_all(std::span<const std::unique_ptr<Detector>> detectors) {
  std::vector<Finding> out;
  for (const std::unique_ptr<Detector>& detector : detectors) {
    std::vector<Finding> findings = detector->finish();
    std::move(findings.begin(), findings.end(), std::back_inserter(out));
  }
  return out;
}

std::vector<std::string> remarks_of(std::span<const std::unique_ptr<Detector>> detectors) {
  std::vector<std::string> out;
  for (const std::unique_ptr<Detector>& detector : detectors) {
    std::vector<std::string> remarks = detector->remarks();
    std::move(remarks.begin(), remarks.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace heddle
