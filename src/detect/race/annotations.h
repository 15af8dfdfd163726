// What a program says about its own races: which it knows of, and where nobody should look.
//
// The runtime turns ANNOTATE_BENIGN_RACE and ANNOTATE_IGNORE_* into marks of these texts:
//
//   heddle:benign-race ADDRESS SIZE     plain accesses to these bytes do not count
//   heddle:ignore-reads 1               plain reads of this thread do not count, until … 0; nested
//   heddle:ignore-writes 1              likewise
//   heddle:race-detection 0             no plain access of any thread counts, until … 1
//
// Atomic accesses always count: they order others. A mark that is none of these is the user's.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace heddle::race {

class Annotations {
 public:
  explicit Annotations(const Catalog& catalog) : catalog_(catalog) {}

  // Takes note of marks, and of memory that is freed: the next owner knows nothing of it.
  void on(const Event& event) {
    if (event.kind == EventKind::kMark) take(event);
    if (event.kind == EventKind::kFree && !benign_.empty()) benign_.erase(event.address);
  }

  bool ignores(const Event& access) const { return in_use_ && is_ignored(access); }

 private:
  struct Regions {
    std::uint32_t reads = 0;  // how many that were begun have not ended
    std::uint32_t writes = 0;
  };

  void take(const Event& mark);
  bool is_ignored(const Event& access) const;

  const Catalog& catalog_;
  bool in_use_ = false;
  bool disabled_ = false;
  std::map<Address, std::uint64_t> benign_;  // start to size
  std::vector<Regions> threads_;
};

}  // namespace heddle::race
