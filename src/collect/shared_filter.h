// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// state is the thread that has it, and its shadow word holds the last access. When another thread
// comes, that last access is delivered, late, right before the one that made the granule shared;
// from then on every access is delivered.
//
// Everything else passes. A new block of memory starts without a past. What passes
// has ordinals of its own.
//
// Executions stay executions, less the items that do not pass. Within one, nobody else comes
// between, so that of several accesses to the same bytes one look at the granule decides, and only
// the last one is worth remembering: a shape is compiled into such *looks* when it is first seen.
// A loop passes as a whole when all that it touches is shared. Of executions, calls in which
// nothing passes do not pass either.
#pragma once

#include "collect/event_buffer.h"
#include "collect/shadow.h"
#include "trace/loop_walk.h"
#include "trace/taker.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::collect {

class SharedFilter : public EventTaker {
 public:
  explicit SharedFilter(EventTaker& next) : next_(next) {}

  void on(std::span<const Event> batch, EventOrdinal first) override;
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override;

  std::uint64_t accesses() const { return accesses_; }  // that came, not that passed

 private:
  // A thread, as the words and the states name it.
  struct Owner {
    std::uint64_t bits;
    std::uint8_t state;
  };

  // What has to be looked at of a segment: bytes that some of its items access.
  struct Look {
    Address offset{};          // added to the word …
    std::uint32_t base{};      // … with this number
    std::uint32_t items{};     // who accesses them, a bit each
    std::uint64_t unlikely{};  // bits that no address has for which a look at one granule is enough
    std::uint64_t last{};      // the last of these accesses, packed
  };
  struct Known {            // a shape
    std::uint32_t first{};  // of looks_
    std::uint32_t count{};
    std::uint32_t items{};
    std::uint32_t all{};  // a bit for each item
    RecordShape::Kind kind{};
    bool compiled{};
    bool piecemeal{};  // more items than bits
  };

  // The state of a granule: nobody has touched it, thread number state - 1 has it, one of the many
  // threads without a state of their own has it (its word says which), several have touched it.
  static constexpr std::uint8_t kUntouched = 0;
  static constexpr std::uint8_t kSomebody = 254;
  static constexpr std::uint8_t kShared = 255;

  // The shadow word of a private granule: its last access.
  //   62..60 memory order   59..58 kind   57..55 size - 1   54..52 offset   51..32 thread
  //   31..0 site
  static constexpr unsigned kOffsetShift = 52;
  static constexpr unsigned kThreadShift = 32;
  static constexpr std::uint64_t kThreadBits = std::uint64_t{0xfffff} << kThreadShift;
  static constexpr Address kGranuleMask = 7;

  static Owner owner(ThreadId thread) {
    return {static_cast<std::uint64_t>(thread) << kThreadShift & kThreadBits,
            thread < kSomebody - 1 ? static_cast<std::uint8_t>(thread + 1) : kSomebody};
  }
  static std::uint64_t pack(EventKind kind, MemoryOrder order, SiteId site, std::uint64_t size) {
    return static_cast<std::uint64_t>(order) << 60 | static_cast<std::uint64_t>(kind) << 58 |
           (size - 1) << 55 | site;
  }
  static Event unpack(std::uint64_t word, Address granule);

  const Known& known(ShapeId id) {
    if (id >= known_.size()) known_.resize(batch_.shapes.size());
    if (!known_[id].compiled) [[unlikely]]
      compile(id, *batch_.shapes[id]);
    return known_[id];
  }
  void compile(ShapeId id, const RecordShape& shape);

  // Which items of the segment or call pass, if looks are enough to tell. Not for kSomebody.
  bool look(const Known& segment, const std::uint64_t* words, Owner owner, std::uint32_t* passing);
  void piece_by_piece(const RecordShape& shape, const Execution& execution);
  void walk(const RecordShape& loop, const Execution& execution);
  bool all_shared(const LoopWalk::Moving& item, std::uint64_t size, std::uint64_t rounds);

  bool touch(const Event& event);
  bool touch_granule(Address address, std::uint64_t packed, ThreadId thread);
  void take(const Event& event);
  void place_events();
  void add(const Execution& execution) {
    if (placed_ != events_.size()) place_events();
    *executions_end_++ = execution;
  }
  void hand_over();

  EventTaker& next_;
  Shadow shadow_;
  std::vector<Known> known_;  // by ShapeId
  std::vector<Look> looks_;
  LoopWalk loop_;
  // What passed and is not yet handed over.
  EventBuffer events_;
  std::size_t placed_ = 0;               // events that have their place among the executions
  std::vector<Execution> executions_;    // twice the room that any batch needs …
  Execution* executions_end_ = nullptr;  // … of which this much is used
  ExecutionBatch batch_;                 // the one that is being taken
  EventOrdinal ordinal_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
