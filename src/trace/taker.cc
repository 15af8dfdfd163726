#include "trace/taker.h"

#include "trace/loop_walk.h"

#include <array>
#include <cstddef>

namespace heddle {
namespace {

constexpr std::uint32_t kMostSize = 0x7fffffffu;  // Event::size has 31 bits

// Makes events and hands them over before they leave the cache.
class Maker {
 public:
  Maker(EventTaker& taker, EventOrdinal first) : taker_(taker), ordinal_(first) {}

  void add(const Event& event) {
    if (used_ == events_.size()) hand_over();
    events_[used_++] = event;
  }
  Event& add(const Event& access, ThreadId thread, Address address) {
    if (used_ == events_.size()) hand_over();
    Event& event = events_[used_++];
    event = access;
    event.thread = thread;
    event.address = address;
    return event;
  }
  void add_items(const RecordShape& shape, const Execution& execution) {
    walk_items(
        shape, execution, [&](const ShapeCall& call) { add(enter_of(call, execution)); },
        [&](std::size_t i) {
          const ShapeItem& item = shape.items[i];
          Event& event = add(item.event, execution.who, address_of(item, execution.words));
          event.size = size_of(item, execution.words) & kMostSize;
        },
        [&](const ShapeCall& call) { add(leave_of(call, execution)); });
  }
  void pass(std::span<const Event> events) {
    hand_over();
    taker_.on(events, ordinal_);
    ordinal_ += events.size();
  }
  void hand_over() {
    if (used_ == 0) return;
    taker_.on(std::span(events_).first(used_), ordinal_);
    ordinal_ += used_;
    used_ = 0;
  }
  EventOrdinal ordinal() const { return ordinal_; }

 private:
  EventTaker& taker_;
  EventOrdinal ordinal_;
  std::size_t used_ = 0;
  std::array<Event, 256> events_;
};

}  // namespace

EventOrdinal EventTaker::on_executions(const ExecutionBatch& batch, EventOrdinal first) {
  Maker maker(*this, first);
  LoopWalk loop;
  const auto add_segments = [&](const RecordShape& shape, ThreadId thread) {
    for (const std::uint32_t before : shape.before) maker.add(segment_of(before, thread));
    maker.add(segment_of(shape.id, thread));
  };
  std::span<const Event> events = batch.events;
  for (const Execution& execution : batch.executions) {
    if (execution.shape == 0) {
      maker.pass(events.first(execution.who));
      events = events.subspan(execution.who);
      continue;
    }
    const RecordShape& shape = *batch.shapes[execution.shape];
    switch (shape.kind) {
      case RecordShape::Kind::kSegment: {
        if (batch.flow) add_segments(shape, execution.who);
        maker.add_items(shape, execution);
        break;
      }
      case RecordShape::Kind::kEnter:
        maker.add(enter_of(shape, execution));
        break;
      case RecordShape::Kind::kLeave:
        maker.add(leave_of(shape, execution));
        break;
      case RecordShape::Kind::kCall:
        maker.add(enter_of(shape, execution));
        maker.add_items(shape, execution);
        maker.add(leave_of(shape, execution));
        break;
      case RecordShape::Kind::kJoined:
        maker.add_items(shape, execution);
        break;
      case RecordShape::Kind::kLoop:
        if (!loop.begin(shape, execution)) break;
        loop.walk([&](std::size_t item, Address address) {
          for (const LoopPart& part : batch.flow ? std::span(shape.parts) : std::span<LoopPart>()) {
            if (part.begin == item) add_segments(*batch.shapes[part.shape], execution.who);
          }
          if (!execution.has(item)) return;
          maker.add(shape.items[item].event, execution.who, address);
        });
        break;
    }
  }
  maker.hand_over();
  return maker.ordinal();
}

}  // namespace heddle
