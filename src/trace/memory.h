// A trace held in memory: what the text notation is parsed into and what tests build.
#pragma once

#include "trace/source.h"

#include <vector>

namespace heddle {

struct Trace {
  Catalog catalog;
  std::vector<Event> events;
};

// Delivers a Trace as if it were read from a file. `batch` is there for tests of whoever reads in
// pieces.
class MemorySource : public EventSource {
 public:
  explicit MemorySource(Trace trace, std::size_t batch = 1u << 16);

  Result<std::span<const Event>> next() override;
  const Catalog& catalog() const override { return trace_.catalog; }
  double fraction() const override;

 private:
  Trace trace_;
  std::size_t batch_;
  std::size_t at_ = 0;
};

// All of a source at once, for small traces.
Result<Trace> read_all(EventSource& source);

}  // namespace heddle
