// A grown-once buffer of events: the decoder asks for room once per record and then only stores.
#pragma once

#include "trace/event.h"

#include <cstddef>
#include <span>
#include <vector>

namespace heddle::collect {

class EventBuffer {
 public:
  Event* room(std::size_t count) {
    if (used_ + count > events_.size()) events_.resize(2 * (used_ + count));
    return events_.data() + used_;
  }
  void added(std::size_t count) { used_ += count; }
  void add(const Event& event) {
    *room(1) = event;
    ++used_;
  }
  void clear() { used_ = 0; }
  std::size_t size() const { return used_; }
  std::span<const Event> events() const { return {events_.data(), used_}; }

 private:
  std::vector<Event> events_;
  std::size_t used_ = 0;
};

}  // namespace heddle::collect
