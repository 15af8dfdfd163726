// Words of the ring into events.
//
// The words are in the one total order of the run (abi/abi.h), so decoding is one pass with little
// state: whose records these are, and for every thread its activations, because functions left by
// an exception or a jump write no Leave of their own and the decoder writes it for them.
//
// A target that was killed leaves a last block that ends anywhere. `Tail::kCut` makes the decoder
// stop at the first zero header and deliver a segment only up to its first zero word; in blocks
// that were handed over that test is not needed and not made, except in records that are marked as
// paused.
#pragma once

#include "collect/activation.h"
#include "collect/event_buffer.h"
#include "collect/execution_buffer.h"
#include "collect/native_sites.h"
#include "collect/shared_filter.h"
#include "collect/units.h"
#include "trace/catalog.h"
#include "trace/event.h"
#include "trace/execution.h"
#include "trace/loop_walk.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace heddle::collect {

enum class Tail { kWhole, kCut };

struct Decision {
  std::uint64_t point{};
  ThreadId thread{};
};

struct NativeStack {
  ThreadId thread{};
  std::vector<std::uint64_t> frames;  // return addresses, innermost first
};

class Decoder {
 public:
  // Reads [offset, offset + length) of the side region; empty when that is not there.
  using ReadSide =
      std::function<std::vector<std::uint8_t>(std::uint64_t offset, std::uint64_t length)>;

  Decoder(Catalog& catalog, bool flow, ReadSide read_side);

  // Appends the events of a block to `out`, from word `at` on, and moves `at` to where the next
  // call goes on: behind the block's last word, or earlier once there are so many events that they
  // would no longer be in the cache when they are used. That may be in the middle of a loop's
  // record. An error is about words that mean nothing;
  // the events before them were appended.
  Status decode(std::span<const std::uint64_t> words, Tail tail, EventBuffer& out, std::size_t& at);

  // From here on, what can be an execution is added to `to` instead, and so is where among them the
  // events belong.
  void execute_into(ExecutionBuffer* to) { executions_ = to; }

  // From here on, everything goes through the filter, at the access level, and `out` stays empty.
  void filter_into(SharedFilter* filter) { filter_ = filter; }

  std::span<const RecordShape* const> shapes() const { return units_.shapes(); }

  ThreadId thread() const { return thread_; }
  bool saw_units() const { return saw_units_; }
  const UnitTable& units() const { return units_; }
  NativeSites& native_sites() { return native_sites_; }

  // What the runtime had to say besides events.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  const std::vector<NativeStack>& stacks() const { return stacks_; }
  const std::string& outcome_text() const { return outcome_text_; }

 private:
  struct ThreadState {
    Activations calls;
    SiteId libcall{};
    std::uint32_t paused_item{};
  };

  static constexpr std::size_t kBatch = 512;     // events, 16 KiB
  static constexpr std::size_t kEventWords = 3;  // of an event's record, at least

  // Decodes one record and returns the number of its words; 0: it begins a loop.
  Result<std::size_t> loop_record(const CompiledSlot& slot, std::span<const std::uint64_t> words);
  Result<std::size_t> slot_record(std::span<const std::uint64_t> words, Tail tail, bool resumed,
                                  EventBuffer& out);
  Result<std::size_t> runtime_record(std::span<const std::uint64_t> words, Tail tail,
                                     EventBuffer& out);
  Status decode_from(std::span<const std::uint64_t> words, Tail tail, EventBuffer& out,
                     std::size_t& at);
  std::size_t common_records(std::span<const std::uint64_t> words, std::size_t at,
                             EventBuffer& out);
  std::size_t executions(std::span<const std::uint64_t> words, std::size_t at);
  static std::size_t event_at(std::span<const std::uint64_t> words, std::size_t at);
  void place_events(EventBuffer& out);
  bool full(const EventBuffer& out) const {
    return out.size() >= kBatch || (executions_ != nullptr && executions_->full());
  }
  void add_segment(SegmentId segment, EventBuffer& out);
  void add_segments(const Unit& unit, const CompiledSlot& slot, EventBuffer& out);
  void segment_slowly(const Unit& unit, const CompiledSlot& slot,
                      std::span<const std::uint64_t> words, Tail tail, bool resumed,
                      EventBuffer& out);
  void add_part(std::size_t item, EventBuffer& out);
  // Some accesses of the loop that is under way.
  void expand_loop(EventBuffer& out);
  void add_range(Event event, std::uint64_t length, EventBuffer& out);
  void event(std::uint64_t header, std::span<const std::uint64_t> words, EventBuffer& out);
  void text(std::uint64_t header, std::span<const std::uint64_t> words, EventBuffer& out);
  Status unit(std::span<const std::uint64_t> words);
  void enter(const CompiledSlot& slot, const std::uint64_t* record, EventBuffer& out);
  void enter(FunctionId function, SiteId site, Address object, std::uint64_t frame,
             EventBuffer& out);
  void joined_event(const JoinedEvent& joined, std::span<const std::uint64_t> words,
                    EventBuffer& out);
  void leave(FunctionId function, EventBuffer& out);
  void resync(const CompiledSlot& slot, std::uint64_t frame, EventBuffer& out);
  void pop_to(std::size_t depth, EventBuffer& out);
  void go_to(ThreadId thread);

  Catalog& catalog_;
  bool flow_;
  ReadSide read_side_;
  ExecutionBuffer* executions_ = nullptr;
  SharedFilter* filter_ = nullptr;
  std::size_t placed_ = 0;  // events that have their place among the executions
  UnitTable units_;
  NativeSites native_sites_;
  ThreadId thread_ = 0;
  std::vector<ThreadState> threads_;
  ThreadState* state_ = nullptr;  // of thread_
  LoopWalk checked_loop_;
  LoopWalk loop_;
  const RecordShape* loop_shape_ = nullptr;
  std::size_t loop_words_ = 0;  // of its record
  bool saw_units_ = false;
  std::vector<std::string> notes_;
  std::vector<Decision> decisions_;
  std::vector<NativeStack> stacks_;
  std::string outcome_text_;
};

}  // namespace heddle::collect
