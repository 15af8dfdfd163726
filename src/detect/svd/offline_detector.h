// `--detect svd-offline`: the algorithm by definition (offline.h) as a detector.
//
// It keeps the whole dependence graph, so it is for traces of some millions of accesses: what comes
// after kMaxNodes is not looked at, and the findings say so. Unique by the sites of the two
// accesses in conflict.
#pragma once

#include "detect/detector.h"
#include "detect/witness.h"
#include "flow/graph.h"
#include "trace/catalog.h"

#include <vector>

namespace heddle::svd {

class OfflineDetector : public Detector {
 public:
  static constexpr std::size_t kMaxNodes = 8'000'000;

  explicit OfflineDetector(const Catalog& catalog) : narrator_(catalog), graph_(catalog) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

 private:
  Witness witness(NodeId node) const;

  Narrator narrator_;
  FlowGraph graph_;
  struct Context {
    StackId stack{};
    LockSetId locks{};
  };
  std::vector<Context> contexts_;  // by node
  bool full_ = false;
};

}  // namespace heddle::svd
