// The trace that a verb reads: its argument, its options, and the loop over its events.
#pragma once

#include "base/result.h"
#include "trace/source.h"

#include <functional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace heddle::cli {

struct TraceInput {
  std::string path;
  bool salvage = false;
};

// Declares TRACE and --salvage.
void add_trace(CLI::App& app, TraceInput& input);

// Opens the trace and hands over its events, batch by batch, until `take` returns false or the end,
// which is an empty batch. With progress, and with the warning about what could not be salvaged.
using TakeEvents = std::function<bool(const EventSource& source, std::span<const Event> events)>;
Status read_trace(const TraceInput& input, const TakeEvents& take);

// Refuses to write a trace over the one that is being read.
Status check_not_same_file(const std::string& input, const std::string& output);

}  // namespace heddle::cli
