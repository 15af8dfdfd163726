// Where an event of a run is, in words that a run without recording understands: the how-manieth
// access of its thread at its site.
#pragma once

#include "hunt/observed_run.h"
#include "trace/event.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::hunt {

struct AccessPosition {
  struct FlaggedSite {
    std::string unit;  // name of the translation unit
    std::uint32_t index = 0;
    bool operator==(const FlaggedSite&) const = default;
  };

  ThreadId thread = 0;
  std::uint64_t count = 0;         // 1: the first
  bool atomic = false;             // or volatile: a scheduling point in any case
  std::vector<FlaggedSite> sites;  // the same site in all units that have it

  // For HEDDLE_OPTIONS.
  std::string stop_access() const;
  std::string stop_sites() const;  // the content of the file
};

// Runs the program as `request` says and finds the event; `request` must make the run in which the
// event had this ordinal, at the same level. An error when it is no access that inline code makes.
Result<AccessPosition> find_access(ObserveRequest request, ThreadId thread, EventOrdinal ordinal);

}  // namespace heddle::hunt
