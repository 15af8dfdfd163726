// Joined records (abi/abi.h) as the collector knows them: what one is put together from.
#pragma once

#include "trace/execution.h"

#include <cstdint>
#include <vector>

namespace heddle::collect {

// What a joined record stands for besides its items.
struct JoinedEvent {
  enum class Kind : std::uint8_t { kSegment, kEnter, kLeave };
  Kind kind{};
  std::uint16_t object{};  // an enter: the word with the object; 0: none
  std::uint32_t id{};      // segment or function
  SiteId site{};           // an enter: of the call
  std::uint32_t item{};    // how many of the items come before it
};

struct JoinedExecution {
  ShapeId shape{};
  SiteId site{};
  std::int32_t shift{};  // from the record to what its words are counted from
};

struct Joined {
  std::vector<JoinedEvent> events;    // all of them: segments are for the flow level
  ShapeId shape{};                    // at the access level; 0: it has no items
  std::vector<JoinedExecution> flow;  // at the flow level: segments, enters and leaves
};

}  // namespace heddle::collect
