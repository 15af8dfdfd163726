// A run as one number: of thread, kind and site of every event, in order, and of nothing that ASLR
// moves. Two runs with the same digest were the same run (hunt/verify.h says where two others
// part).
#pragma once

#include "detect/detector.h"
#include "trace/catalog.h"

#include <cstdint>
#include <vector>

namespace heddle::hunt {

class RunDigest final : public Detector {
 public:
  explicit RunDigest(const Catalog& catalog) : catalog_(catalog) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override { return {}; }

  std::uint64_t digest() const { return digest_; }
  std::uint64_t events() const { return events_; }

 private:
  std::uint64_t site(SiteId site);

  const Catalog& catalog_;
  std::vector<std::uint64_t> sites_;  // their hashes; 0: not yet known
  std::uint64_t digest_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace heddle::hunt
