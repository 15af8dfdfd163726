// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// state is the thread that has it, and its shadow word holds the last access. When another thread
// comes, that last access is delivered, late, before the execution that made the granule shared;
// from then on every access is delivered.
//
// Everything else passes. A new block of memory starts without a past. What passes
// has ordinals of its own.
//
// Executions stay executions, less the items that do not pass (looks.h). What a loop takes from
// other threads becomes shared before it runs, and it passes as a whole when all that it touches is
// shared then. Of executions, calls in which nothing passes do not pass
// either.
#pragma once

#include "base/result.h"
#include "collect/event_buffer.h"
#include "collect/looks.h"
#include "collect/shadow.h"
#include "trace/loop_walk.h"
#include "trace/taker.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace heddle::collect {

class SharedFilter : public EventTaker {
 public:
  // An error: there is no address space for the shadow.
  static Result<std::unique_ptr<SharedFilter>> create(EventTaker& next);

  void on(std::span<const Event> batch, EventOrdinal first) override;

  // For a decoder that has its words looked at as it finds them, in stretches and, between them,
  // events. All shapes that come have been named; what passed is handed over at the latest before
  // the words go away.
  void expect(std::span<const RecordShape* const> shapes);
  void take(std::span<const Event> events);
  void hand_over();

  const Forms::OfUnit& forms(const Unit& unit) { return forms_.of(unit, shapes_); }
  std::uint64_t accesses() const { return accesses_; }  // that came, not that passed

 private:
  friend class Stretch;

  // The state of a granule: nobody has touched it, thread number state - 1 has it, one of the many
  // threads without a state of their own has it (its word says which), several have touched it.
  static constexpr std::uint8_t kUntouched = 0;
  static constexpr std::uint8_t kSomebody = 254;
  static constexpr std::uint8_t kShared = 255;
  static std::uint8_t state_of(ThreadId thread) {
    return thread < kSomebody - 1 ? static_cast<std::uint8_t>(thread + 1) : kSomebody;
  }

  static constexpr Address kGranuleMask = 7;
  static constexpr std::size_t kRoom = 1024;  // executions that wait to be handed over, 24 KiB

  explicit SharedFilter(EventTaker& next) : next_(next), executions_(kRoom + 4) {}

  // The execution of a segment, a call or a joined record, whatever it touches.
  void segment(const Form& form, const Execution& execution);
  // That of a loop, or of a segment with sizes that its record tells. False: it takes the way of
  // all others.
  bool loop(const Form& form, const Execution& execution);
  bool ranges(const Execution& execution);
  // A round of a loop that gathers, at these addresses, one for each lane.
  void round(std::span<const Lane> lanes, std::span<const Address> addresses,
             const Execution& execution);

  bool look(std::span<const Look> looks, const Execution& execution, std::uint32_t* passing);
  void piece_by_piece(const Execution& execution);
  bool all_shared(Address first, std::uint64_t size) const;
  struct Way;
  static bool way_of(const Row& row, const std::uint64_t* record, std::uint64_t rounds, Way& way);
  static bool all_shared(const Row& row, const std::uint64_t* record, std::uint64_t rounds,
                         Shadow::View shadow);
  bool stays_private(const Form& form, const Execution& execution);
  bool remember(const Way& way, std::uint32_t size, std::uint8_t mine, std::uint64_t word);
  bool share_rows(const Form& form, const Execution& execution);

  bool touch(const Event& event, Address address, ThreadId thread);
  bool touch_granule(Address address, std::uint64_t last, ThreadId thread);
  bool take_granule(Address address, std::uint64_t word, ThreadId thread);
  void share(Address address);
  // Whether the granule is another thread's.
  bool is_others(Address address, ThreadId thread) const {
    const std::uint8_t state = shadow_.view().state(address);
    if (state == kShared || state == kUntouched) return false;
    return state != state_of(thread) ||
           (state == kSomebody && (shadow_.view().word(address) & LastAccess::kThreadBits) !=
                                      LastAccess::of_thread(thread));
  }
  void take(const Event& event);
  void place_events();
  void make_room();
  void add(const Execution& execution) {
    if (placed_ != events_.size()) place_events();
    executions_[used_++] = execution;
  }

  EventTaker& next_;
  Shadow shadow_;
  std::span<const RecordShape* const> shapes_;
  Forms forms_;
  LoopWalk loop_;
  // What passed and is not yet handed over.
  EventBuffer events_;
  std::size_t placed_ = 0;  // events that have their place among the executions
  std::vector<Execution> executions_;
  std::size_t used_ = 0;  // of them
  EventOrdinal ordinal_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
