// For tests of the decoder and of the filter of shared accesses.
#pragma once

#include "collect/shared_filter.h"
#include "trace/taker.h"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::collect {

// Keeps everything as events, and checks that the ordinals count it.
class Taken : public EventTaker {
 public:
  void on(std::span<const Event> batch, EventOrdinal first) override {
    EXPECT_EQ(first, events.size());
    events.insert(events.end(), batch.begin(), batch.end());
  }
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override {
    const EventOrdinal next = EventTaker::on_executions(batch, first);
    in_executions += next - first - batch.events.size();
    return next;
  }
  std::vector<Event> events;
  std::size_t in_executions = 0;
};

inline std::unique_ptr<SharedFilter> shared_filter(EventTaker& next) {
  Result<std::unique_ptr<SharedFilter>> filter = SharedFilter::create(next);
  return filter.ok() ? std::move(*filter) : nullptr;
}

}  // namespace heddle::collect
