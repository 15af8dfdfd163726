// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// shadow word holds the last access while only one thread has touched it. When another thread
// comes, that last access is delivered, late, right before the one that made the granule shared;
// from then on every access is delivered.
//
// Everything that is not an access passes. A new block of memory starts without a past.
#pragma once

#include "collect/shadow.h"
#include "trace/event.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::collect {

class SharedFilter {
 public:
  // What passes of `events`; valid until the next call.
  std::span<const Event> pass(std::span<const Event> events);

  // Whether this access passes; appends the last private access to `out` when the granule becomes
  // shared by it.
  bool access(const Event& event, std::vector<Event>& out);

  std::uint64_t accesses() const { return accesses_; }

 private:
  bool wide_access(const Event& event, std::vector<Event>& out);
  bool become_shared(std::uint64_t& word, const Event& event, std::vector<Event>& out);

  Shadow shadow_;
  std::vector<Event> passed_;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
