// Two traces of what should be the same run: where do they part?
//
// Compared are thread, kind and site of every event, in order; addresses differ from run to run,
// and values with them. The first difference is where something came in that the schedule does not
// decide; what it was can only be guessed from what the runtime saw the program use.
#pragma once

#include "base/result.h"
#include "trace/source.h"

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::hunt {

struct Difference {
  EventOrdinal ordinal = 0;
  std::string first;  // the event in words, "the end" when there is none
  std::string second;
};

// nullopt: the same.
Result<std::optional<Difference>> first_difference(EventSource& first, EventSource& second);

// What a run used that the schedule does not decide (enum heddle_source), in words.
std::string name_sources(std::uint32_t sources);

}  // namespace heddle::hunt
