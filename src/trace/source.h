// EventSource: where events come from. The one interface between traces and those who read them.
//
//   Result<std::unique_ptr<EventSource>> source = open_trace("run.heddle");
//   if (!source.ok()) …
//   while (true) {
//     Result<std::span<const Event>> batch = (*source)->next();
//     if (!batch.ok()) …            // damage: the message has the offset
//     if (batch->empty()) break;    // the end
//     for (const Event& event : *batch) …
//   }
//
// A detector reads any trace through this: a binary file, the text notation, STD text, or a program
// that is still running.
#pragma once

#include "base/result.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

class EventSource {
 public:
  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;

  // The next events of the total order; empty at the end. Valid until the next call.
  virtual Result<std::span<const Event>> next() = 0;

  // Grows while events are read; whatever a delivered event refers to is there.
  virtual const Catalog& catalog() const = 0;

  // After the end: what was left out (OpenOptions::salvage), in one line; empty when nothing was.
  virtual std::string warning() const { return {}; }

  // "binary", "text", "std", or empty for one that is not a file.
  virtual std::string_view format() const { return {}; }

  // How much of the trace was delivered, from 0 to 1; negative when nobody knows.
  virtual double fraction() const { return -1; }
};

struct OpenOptions {
  bool salvage = false;  // deliver everything before the first damage, then end with a warning
};

// Opens a trace of any format, told apart by content: binary, text notation, STD.
Result<std::unique_ptr<EventSource>> open_trace(const std::string& path,
                                                const OpenOptions& options = {});

}  // namespace heddle
