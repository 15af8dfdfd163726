#include "trace/memory.h"

#include <algorithm>

namespace heddle {

MemorySource::MemorySource(Trace trace, std::size_t batch)
    : trace_(std::move(trace)), batch_(std::max<std::size_t>(batch, 1)) {}

Result<std::span<const Event>> MemorySource::next() {
  const std::span<const Event> rest = std::span<const Event>(trace_.events).subspan(at_);
  const std::span<const Event> now = rest.first(std::min(batch_, rest.size()));
  at_ += now.size();
  return now;
}

double MemorySource::fraction() const {
  if (trace_.events.empty()) return 1;
  return static_cast<double>(at_) / static_cast<double>(trace_.events.size());
}

Result<Trace> read_all(EventSource& source) {
  Trace trace;
  while (true) {
    const Result<std::span<const Event>> batch = source.next();
    if (!batch.ok()) return batch.error();
    if (batch->empty()) break;
    trace.events.insert(trace.events.end(), batch->begin(), batch->end());
  }
  trace.catalog = source.catalog();
  return trace;
}

}  // namespace heddle
