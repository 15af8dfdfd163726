// All detectors on one run: a panel of judges that see the same events.
#pragma once

#include "detect/avio/avio.h"
#include "detect/detector.h"
#include "detect/svd/examination_log.h"
#include "detect/svd/svd.h"
#include "trace/catalog.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace heddle::table {

// The columns of the tables, in their order.
inline constexpr const char* kDetectors[] = {"avio", "avio-h",   "lockset",
                                             "race", "frontier", "svd"};

// As AVIO's table 4 calls them.
const char* name_in_paper(const std::string& detector);

class Panel : public Detector {
 public:
  // What was learned outlives the panel. AVIO-H uses what AVIO-S learned, as in the paper (section
  // 4).
  Panel(const Catalog& catalog, const avio::Invariants& learned);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  // Who said what, after finish.
  const std::map<std::string, std::vector<Finding>>& findings() const { return findings_; }

  std::uint64_t accesses() const { return accesses_; }
  std::uint64_t segments() const { return segments_; }
  std::uint64_t units() const { return svd_->online().units_created(); }
  const svd::ExaminationLog& log() const { return log_; }

 private:
  std::map<std::string, std::unique_ptr<Detector>> detectors_;
  svd::SvdDetector* svd_ = nullptr;  // one of them
  svd::ExaminationLog log_;
  std::map<std::string, std::vector<Finding>> findings_;
  std::uint64_t accesses_ = 0, segments_ = 0;
};

// AVIO after several amounts of training, on the same run.
class Classes : public Detector {
 public:
  // What was learned outlives it.
  Classes(const Catalog& catalog, std::span<const avio::Invariants> learned);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override { return {}; }

  // By amount of training: the static findings.
  std::vector<std::set<std::string>> take_findings();

 private:
  std::vector<std::unique_ptr<avio::Avio>> detectors_;
};

}  // namespace heddle::table
