// AVIO: accesses that are meant to be one step and were split by another thread.
//
// S. Lu, J. Tucek, F. Qin, Y. Zhou, "AVIO: Detecting Atomicity Violations via Access Interleaving
// Invariants", ASPLOS 2006. Section 2.2 defines the unserializable interleavings (avio/history.h
// has the definition and the state that decides it, avio/shadow.h the memory of it); sections 2.3
// and 3.2 say which of them matter: those at instructions where no passing run ever had one
// (avio/invariants.h).
//
// One pass, constant time per access whatever the number of threads. With invariants, a finding is
// a violation of what was learned. Without, every unserializable interleaving is a finding,
// labelled unlearned and ranked low: most of them are what the programmer wants (a flag that
// another thread sets, a counter under its lock).
//
// One finding per case and sites of P, R and I; further instances are counted. An instance is one
// (P, R, I) of events, however many bytes it concerns. The first instance is the one shown.
//
// Where we differ from AVIO-S (section 4.2): exact bytes instead of words; freed memory and ended
// threads are forgotten; the triple names which R (avio/history.h); atomic accesses and
// read-modify-writes count like others.
#pragma once

#include "detect/avio/explain.h"
#include "detect/avio/finder.h"
#include "detect/avio/invariants.h"
#include "detect/avio/judge.h"
#include "detect/avio/reports.h"
#include "detect/detector.h"
#include "trace/catalog.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_set.h>

namespace heddle::avio {

struct Options {
  unsigned granule = 1;                    // is_granule
  const Invariants* invariants = nullptr;  // must outlive the detector
  bool learn = false;                      // evidence() will be asked for
};

class Avio : public Detector, private TripleSink {
 public:
  Avio(const Catalog& catalog, const Options& options);

  void on(std::span<const Event> batch, EventOrdinal first) override;
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override;
  std::vector<Finding> finish() override;

  // What this run can teach, should it pass. Needs Options::learn.
  RunEvidence evidence() const;

  // Splits at sites about which nothing was learned (never executed in a passing run).
  std::uint64_t unjudged() const { return unjudged_; }
  Shadow::Memory memory() const { return finder_.memory(); }

 private:
  struct Instance {
    SplitCase split{};
    std::uint64_t p{}, r{};
    bool operator==(const Instance&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Instance& instance) {
      return H::combine(std::move(hash), instance.split, instance.p, instance.r);
    }
  };
  // Triples that were judged before, by a hash of their sites: most come again and again.
  struct Judged {
    Reports::Key key;
    Judge::Verdict verdict{};
    std::size_t report{};
  };
  static constexpr std::size_t kJudged = 1024;

  void on_triple(const Triple& triple) override;
  std::uint64_t* count_of(const Triple& triple) override;
  void on_access(const Event& event, EventOrdinal ordinal);
  EventOrdinal execute(const Execution& execution, const RecordShape& shape, EventOrdinal ordinal);
  EventOrdinal execute_alone(const ExecutionBatch& batch, const Execution& execution,
                             EventOrdinal ordinal);
  void enter_context_of(ThreadId thread);
  void note_executed(SiteId site);
  void on_other(const Event& event, EventOrdinal ordinal);
  bool seen_for_this_access(const Triple& triple);
  bool seen_nearby(const Instance& instance, Address cell);
  const Judged& judged(const Triple& triple);

  const Catalog& catalog_;
  const bool learns_;
  const Address cell_size_;
  Judge judge_;
  PairLog pairs_;  // when learning
  TripleFinder finder_;
  Explainer explainer_;
  Reports reports_;
  static constexpr ThreadId kNoThread = ~ThreadId{0};
  ThreadId thread_ = kNoThread;  // of the access before, while `context_` is its context
  ContextId context_ = 0;
  std::array<Judged, kJudged> judged_{};
  EventOrdinal last_i_ = kNoEvent;
  std::vector<Instance> seen_;  // triples of the access last_i_
  absl::flat_hash_set<Instance> seen_set_;
  struct Nearby {
    Instance instance;
    Address cell{};
  };
  std::array<Nearby, 16> nearby_;       // the last of them that are narrow …
  std::size_t narrow_ = 0;              // … and how many there were
  std::vector<std::uint8_t> executed_;  // by site, when learning
  absl::flat_hash_set<std::pair<SiteId, SiteId>> split_pairs_;
  std::uint64_t unjudged_ = 0;
  std::uint64_t dropped_ = 0;  // splits of what is no invariant
};

}  // namespace heddle::avio
