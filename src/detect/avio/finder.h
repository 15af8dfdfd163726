// TripleFinder: from events to triples. It follows threads and memory blocks and feeds the Shadow.
//
// A thread that begins again, or goes on after its end, is a new actor; memory that is allocated or
// freed is forgotten. Thread stacks are blocks like others: the runtime announces them by Alloc and
// Free.
#pragma once

#include "detect/avio/lanes.h"
#include "detect/avio/patterns.h"
#include "detect/avio/shadow.h"
#include "detect/avio/spots.h"
#include "trace/event.h"
#include "trace/execution.h"
#include "trace/loop_walk.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

class TripleFinder {
 public:
  // `granule`: is_granule. `pairs`: where pairs are put down, for who learns; may be null.
  TripleFinder(unsigned granule, TripleSink& sink, PairLog* pairs = nullptr)
      : learns_(pairs != nullptr),
        patterns_(granule == 1 && pairs == nullptr),
        shadow_({granule}, spots_, sink, pairs) {}

  // An access of the thread whose turn it is; `context` comes back in the triples. Ordinals grow.
  void access(EventKind kind, SiteId site, Address address, std::uint32_t size,
              EventOrdinal ordinal, ContextId context) {
    if (ordinal - base_ > kMaxOrdinal || spots_.full()) start_over(ordinal);
    const SpotId spot = spots_.of({actor_, site, context, kind, size > 8});
    shadow_.access(Series::of(make_stamp(ordinal - base_, spot), is_write(kind)), address, size);
  }
  // From this ordinal on it is this thread's turn, if it is not already.
  void go_on_with(ThreadId thread, EventOrdinal ordinal) {
    if (thread != thread_) begin_turn(thread, ordinal);
  }

  // An access of any thread.
  void access(const Event& event, EventOrdinal ordinal, ContextId context) {
    go_on_with(event.thread, ordinal);
    access(event.kind, event.site, event.address, event.size, ordinal, context);
  }
  // Executions. First come those that follow, to be looked at: as many as are of one thread and
  // have everything that their shapes have, but no loop that is long; their number is returned.
  // Then they come again, one by one, to execute_expected(), loops to execute_loop().
  std::size_t expect(std::span<const Execution> executions,
                     std::span<const RecordShape* const> shapes, EventOrdinal ordinal);
  Pattern& pattern(const Execution& execution) { return patterns_.known(execution.shape); }
  [[gnu::always_inline]] void execute_expected(Pattern& pattern, const Execution& segment,
                                               const RecordShape& shape, EventOrdinal ordinal,
                                               ContextId context) {
    const SpotId row = this->row(pattern, segment.shape, shape, context);
    execute_from(row, pattern, segment, shape, ordinal);
  }
  // The same for a call. `inside` gives the context inside of it, from the one outside.
  template <typename Inside>
  [[gnu::always_inline]] void execute_call(Pattern& pattern, const Execution& call,
                                           const RecordShape& shape, EventOrdinal ordinal,
                                           ContextId context, Inside inside) {
    if (!pattern.has_row(actor_, context) || pattern.site != call.site) {
      const ContextId in_it = inside();
      set_row(pattern, spots_.row(call.shape, shape, actor_, in_it, no_calls), context);
      pattern.site = call.site;
    }
    execute_from(pattern.row, pattern, call, shape, ordinal);
  }
  // The same for a joined record. `inside` gives the context inside of one of its calls.
  template <typename Inside>
  [[gnu::always_inline]] void execute_joined(Pattern& pattern, const Execution& joined,
                                             const RecordShape& shape, EventOrdinal ordinal,
                                             ContextId context, Inside inside) {
    if (!pattern.has_row(actor_, context)) {
      set_row(pattern, spots_.row(joined.shape, shape, actor_, context, inside), context);
    }
    execute_from(pattern.row, pattern, joined, shape, ordinal);
  }
  // One alone, of the thread whose turn it is; its calls have no context.
  void execute(const Execution& segment, const RecordShape& shape, EventOrdinal ordinal,
               ContextId context);
  // Returns the number of accesses.
  std::uint64_t execute_loop(const Execution& loop, const RecordShape& shape, EventOrdinal ordinal,
                             ContextId context);

  // That access, as triples have it.
  Touch touch(const Event& event, EventOrdinal ordinal, ContextId context) const {
    return Touch::make(actor_, event.kind, ordinal - base_, event.site, context);
  }
  // For an access that is about to come.
  [[gnu::always_inline]] void prefetch(const Event& event) const {
    shadow_.prefetch(event.address, event.size);
  }
  // The same, when it is nearer, where many locations have been with many threads: first this, then
  // that.
  bool asks_for_others() { return shadow_.asks_for_others(); }
  [[gnu::always_inline]] void prefetch_history(const Event& event) const {
    shadow_.prefetch_history(event.address, event.size);
  }
  [[gnu::always_inline]] void prefetch_others(const Event& event) const {
    const bool known = event.thread < actors_.size() && actors_[event.thread] != kNone;
    if (known) shadow_.prefetch_others(event.address, event.size, actors_[event.thread]);
  }

  // Takes note of threads and memory blocks; every other event is ignored.
  void on(const Event& event);

  EventOrdinal ordinal(const Touch& touch) const { return base_ + touch.ordinal(); }
  ThreadId thread(const Touch& touch) const { return threads_[touch.actor()]; }

  Shadow::Memory memory() const { return shadow_.memory(); }

 private:
  static constexpr Actor kNone = ~Actor{0};
  static constexpr ThreadId kNoThread = ~ThreadId{0};

  // `row`: the spots of its items.
  [[gnu::always_inline]] void execute_from(SpotId row, const Pattern& pattern,
                                           const Execution& segment, const RecordShape& shape,
                                           EventOrdinal ordinal) {
    const Stamp first = make_stamp(ordinal - base_, row);
    if (!pattern.simple) [[unlikely]] {
      return learns_ ? one_by_one(shape, segment.words, first)
                     : touch_by_touch(pattern, segment.words, first);
    }
    next_place_ = shadow_.execute(pattern.touches, segment.words, first, next_place_);
  }
  // The spots of the pattern's items, for the thread whose turn it is.
  SpotId row(Pattern& pattern, ShapeId id, const RecordShape& shape, ContextId context) {
    if (!pattern.has_row(actor_, context)) {
      set_row(pattern, spots_.row(id, shape, actor_, context, no_calls), context);
    }
    return pattern.row;
  }
  static ContextId no_calls(const ShapeCall&) { return 0; }
  void set_row(Pattern& pattern, SpotId row, ContextId context) const {
    pattern.row = row;
    pattern.actor = actor_;
    pattern.context = context;
  }
  // So many rounds of loop_, if what they touch can be followed touch by touch.
  bool follow(const Pattern& pattern, std::uint64_t rounds, Stamp first);
  // What is left of loop_, a round of which is a simple pattern.
  std::uint64_t execute_rounds(const Execution& loop, const RecordShape& shape,
                               EventOrdinal ordinal, ContextId context);
  void touch_by_touch(const Pattern& pattern, const std::uint64_t* words, Stamp first);
  void one_by_one(const RecordShape& segment, const std::uint64_t* words, Stamp first);
  void begin_turn(ThreadId thread, EventOrdinal ordinal);
  Actor new_actor(ThreadId thread);
  void retire(ThreadId thread);
  void make_room(EventOrdinal ordinal);
  void start_over(EventOrdinal ordinal);

  const bool learns_;
  Spots spots_;
  Patterns patterns_;
  LoopWalk loop_;
  Lanes lanes_;
  std::vector<std::uint64_t> round_words_;
  Shadow shadow_;
  // What the executions that are expected touch; which is next.
  static constexpr std::size_t kMostExecutions = 48;
  static constexpr std::size_t kMostItems = 1 << 16;
  static constexpr std::uint64_t kMostRounds = 1 << 10;  // of a loop that is expected
  static constexpr std::size_t kPlaces = 192;
  std::array<Stamp*, kPlaces> places_;
  Stamp** next_place_ = nullptr;
  EventOrdinal base_ = 0;
  ThreadId thread_ = kNoThread;  // whose turn it is
  Actor actor_ = 0;
  std::vector<Actor> actors_;                           // by thread id
  std::vector<ThreadId> threads_;                       // by actor
  absl::flat_hash_map<Address, std::uint64_t> blocks_;  // sizes, for a Free that does not say
};

}  // namespace heddle::avio
