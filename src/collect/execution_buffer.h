// The executions of a batch: room for a fixed number, so that the decoder only stores.
#pragma once

#include "trace/execution.h"

#include <array>
#include <cstddef>
#include <span>

namespace heddle::collect {

class ExecutionBuffer {
 public:
  static constexpr std::size_t kRoom = 512;  // 12 KiB, and as much as their words take
  // Of one record: it may be the last and go beyond.
  static constexpr std::size_t kMostAtOnce = 400;

  Execution* data() { return executions_.data(); }
  std::size_t size() const { return used_; }
  void resize(std::size_t used) { used_ = used; }
  bool full() const { return used_ >= kRoom; }
  void add(const Execution& execution) { executions_[used_++] = execution; }
  std::span<const Execution> executions() const { return {executions_.data(), used_}; }

 private:
  // Two for the places of events at the end.
  std::array<Execution, kRoom + kMostAtOnce + 2> executions_;
  std::size_t used_ = 0;
};

}  // namespace heddle::collect
