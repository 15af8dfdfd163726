// What a program says about its own races: which it knows of, and where nobody should look.
//
// The runtime turns the annotations of ThreadSanitizer into marks of these texts:
//
//   heddle:benign-race ADDRESS SIZE     plain accesses to these bytes do not count
//   heddle:ignore-reads 1               plain reads of this thread do not count, until … 0; nested
//   heddle:ignore-writes 1              likewise
//   heddle:ignore-sync 1                what this thread does orders nothing; likewise
//   heddle:ignore-all 1                 the three together: the inside of a lock that is announced
//   heddle:race-detection 0             no plain access of any thread counts, until … 1
//
// Atomic accesses count, because they order others, unless they order nothing either. Fork and
// join always order. A mark that is none of these is the user's.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::race {

class Annotations {
 public:
  explicit Annotations(const Catalog& catalog) : catalog_(catalog) {}

  // Takes note of marks, and of memory that is freed: the next owner knows nothing of it.
  void on(const Event& event) {
    if (event.kind >= EventKind::kAlloc) on_mark_or_block(event);
  }

  // The access does not count.
  bool ignores(const Event& access) const { return in_use_ && is_ignored(access); }

  // What this thread does now orders nothing, even what is said to by marks of the user's.
  bool ignores_order_of(ThreadId thread) const {
    return in_use_ && thread < threads_.size() && threads_[thread].sync != 0;
  }
  // The event is synchronisation and takes place, but orders nothing.
  bool ignores_order(const Event& event) const {
    return ignores_order_of(event.thread) && may_order(event);
  }

 private:
  struct Regions {
    std::uint32_t reads = 0;  // how many that were begun have not ended
    std::uint32_t writes = 0;
    std::uint32_t sync = 0;
  };

  void on_mark_or_block(const Event& event);
  void take(const Event& mark);
  void add_benign(Address address, std::uint64_t size);
  void forget_benign(Address address, std::uint64_t size);
  bool is_ignored(const Event& access) const;
  static bool may_order(const Event& event);

  const Catalog& catalog_;
  bool in_use_ = false;
  bool disabled_ = false;
  std::map<Address, Address> benign_;  // first byte to the byte after the last; apart
  absl::flat_hash_map<Address, std::uint64_t> blocks_;  // size of live blocks, for Free without one
  std::vector<Regions> threads_;
};

}  // namespace heddle::race
