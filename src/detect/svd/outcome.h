// For tests: what Online says of a run that it gets as executions, and of the same one as events.
#pragma once

#include "detect/svd/online.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace heddle::svd {

struct Outcome {
  std::vector<std::tuple<EventOrdinal, EventOrdinal, EventOrdinal>> violations;
  std::vector<EventOrdinal> members;  // of the first units
  std::size_t ended = 0;
  std::size_t created = 0;
  bool operator==(const Outcome&) const = default;
};

class Examined {
 public:
  Examined(const Catalog& catalog, const OnlineOptions& options) : online_(catalog, options) {}

  Outcome executions(std::span<const Execution> executions,
                     std::span<const RecordShape* const> shapes) {
    online_.on({executions, {}, shapes, true}, 0, [&] { take(); });
    return finished();
  }
  Outcome events(std::span<const Execution> executions,
                 std::span<const RecordShape* const> shapes) {
    std::vector<Event> events;
    for (const Execution& execution : executions) {
      const RecordShape& shape = *shapes[execution.shape];
      if (shape.kind != RecordShape::Kind::kSegment) {
        const bool enters = shape.kind == RecordShape::Kind::kEnter;
        events.push_back(enters ? enter_of(shape, execution) : leave_of(shape, execution));
        continue;
      }
      events.push_back(segment_of(shape.id, execution.who));
      for (const ShapeItem& item : shape.items) {
        events.push_back(item.event);
        events.back().thread = execution.who;
        events.back().address = address_of(item, execution.words);
      }
    }
    for (std::size_t done = 0; done < events.size();) {
      done += online_.on(std::span(std::as_const(events)).subspan(done), done);
      take();
    }
    return finished();
  }

 private:
  static constexpr std::size_t kDrawn = 20;

  void take() {
    for (const Violation& violation : online_.take_violations()) {
      out_.violations.emplace_back(violation.inside.ordinal, violation.remote.ordinal,
                                   violation.store.ordinal);
      if (out_.violations.size() > kDrawn) continue;
      for (const UnitMember& member : online_.members(violation.unit))
        out_.members.push_back(member.access.ordinal);
    }
  }
  Outcome finished() {
    std::sort(out_.violations.begin(), out_.violations.end());
    out_.ended = online_.units_ended_by_sharing();
    out_.created = online_.units_created();
    return out_;
  }

  Online online_;
  Outcome out_;
};

}  // namespace heddle::svd
