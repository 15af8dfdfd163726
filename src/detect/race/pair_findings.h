// From pairs of accesses to findings: one per pair of places and variable, however often it
// happened and whichever of the two came first. Used by all race detectors of this folder.
#pragma once

#include "detect/witness.h"

#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::race {

// The synchronisation that came near an access: what a reader asks for first. The latest
// operations of every thread.
class RecentSync {
 public:
  struct Operation {
    Event event;
    EventOrdinal ordinal = kNoEvent;
  };

  void on(const Event& event, EventOrdinal ordinal);
  // The latest operation of `thread` before `ordinal`, and the first after it; ordinal kNoEvent
  // where there is none or it is too long ago.
  Operation before(ThreadId thread, EventOrdinal ordinal) const;
  Operation after(ThreadId thread, EventOrdinal ordinal) const;

 private:
  static constexpr std::size_t kKept = 32;
  struct Ring {
    std::vector<Operation> operations;
    std::size_t next = 0;
  };
  std::vector<Ring> threads_;
};

class PairFindings {
 public:
  PairFindings(const Narrator& narrator, const RecentSync& sync)
      : narrator_(narrator), sync_(sync) {}

  // Takes note of one instance; the finding when it is the first of its kind, to be completed by
  // the caller, else null.
  Finding* add(const Witness& earlier, const Witness& later);

  // With fingerprints, highest rank first, then in the order of their first instances.
  std::vector<Finding> take();

 private:
  struct Side {
    SiteId site{};
    EventKind kind{};
    auto operator<=>(const Side&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Side& side) {
      return H::combine(std::move(hash), side.site, side.kind);
    }
  };
  using SitesAndAddress = std::pair<std::pair<Side, Side>, Address>;
  using SitesAndVariable = std::pair<std::pair<Side, Side>, std::string>;

  void add_nearby(Finding& finding, const Witness& earlier, const Witness& later) const;

  static constexpr std::size_t kMostAddresses = 1u << 20;

  const Narrator& narrator_;
  const RecentSync& sync_;
  absl::flat_hash_map<SitesAndAddress, std::size_t> by_address_;  // a shortcut
  absl::flat_hash_map<SitesAndVariable, std::size_t> by_variable_;
  std::vector<Finding> findings_;
  EventOrdinal last_earlier_ = kNoEvent;  // the latest instance: several bytes of one pair count
  EventOrdinal last_later_ = kNoEvent;    // once
};

// "write – read" and the like, as a finding's summary says it.
std::string_view verb_of(EventKind kind);

}  // namespace heddle::race
