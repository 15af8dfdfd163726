// The detector `serializability`: transactions (begin … end; an event outside is one of its own)
// that no serial order explains, as findings. engine.h and transactions.h say how they are found.
//
// One finding per closing pair of places, variable or lock; further cycles that close there are
// counted. The first is shown, with its witness: the transactions along the cycle are named A (the
// one in which the cycle closed), B, C …, and every edge is two events, one ordered before the
// other.
#pragma once

#include "detect/detector.h"
#include "detect/serializability/engine.h"
#include "detect/witness.h"

#include <tuple>

namespace heddle::serializability {

class SerializabilityDetector final : public Detector, private ViolationSink {
 public:
  explicit SerializabilityDetector(const Catalog& catalog)
      : narrator_(catalog), engine_(*this, narrator_.stacks(), narrator_.locks_held()) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  const Engine& engine() const { return engine_; }

 private:
  using Key = std::tuple<SiteId, EventKind, SiteId, EventKind, EdgeKind, Address>;

  bool wants(const Edge& closing) override;
  void on_violation(const Violation& violation) override;
  Step step(const Touch& touch, const Edge& edge, std::string role) const;
  std::string object(const Edge& edge) const;

  Narrator narrator_;
  Engine engine_;
  absl::flat_hash_map<Key, std::size_t> by_place_;
  std::vector<Finding> findings_;
};

}  // namespace heddle::serializability
