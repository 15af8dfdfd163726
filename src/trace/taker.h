// EventTaker: takes a run's events in their total order, as they are or as executions.
//
// A program that is being watched makes hundreds of millions of accesses a second. Who can judge
// them by shape overrides on_executions and is spared the making and reading of events.
#pragma once

#include "trace/event.h"
#include "trace/execution.h"

#include <span>

namespace heddle {

class EventTaker {
 public:
  EventTaker() = default;
  EventTaker(const EventTaker&) = delete;
  EventTaker& operator=(const EventTaker&) = delete;
  virtual ~EventTaker() = default;

  // The next events; `first` is the ordinal of batch[0].
  virtual void on(std::span<const Event> batch, EventOrdinal first) = 0;

  // The next ones as executions. Returns the ordinal of what comes next. Unless overridden they
  // come as events.
  virtual EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first);
};

}  // namespace heddle
