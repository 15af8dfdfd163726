#include "collect/shared_filter.h"

#include <algorithm>

namespace heddle::collect {

Result<std::unique_ptr<SharedFilter>> SharedFilter::create(EventTaker& next) {
  std::unique_ptr<SharedFilter> filter(new SharedFilter(next));
  if (!filter->shadow_.made()) {
    return Error{
        "there is no address space in which to note who touched which memory; try again without a "
        "limit to it (`ulimit -v unlimited`)"};
  }
  return filter;
}

// The granule of another thread becomes everybody's.
void SharedFilter::share(Address address) {
  events_.add(LastAccess::unpack(shadow_.view().word(address), address & ~kGranuleMask));
  shadow_.set(address, kShared);
}

// An access to one granule. Whether the granule is shared; the last private access of one that
// becomes shared by it passes.
inline bool SharedFilter::touch_granule(Address address, std::uint64_t last, ThreadId thread) {
  const std::uint8_t state = shadow_.view().state(address);
  if (state == kShared) return true;
  const std::uint64_t word = last | LastAccess::of_thread(thread) | LastAccess::at(address);
  if (state != state_of(thread) || state == kSomebody) [[unlikely]]
    return take_granule(address, word, thread);
  shadow_.view().word(address) = word;
  return false;
}

// One that is not surely this thread's.
bool SharedFilter::take_granule(Address address, std::uint64_t word, ThreadId thread) {
  constexpr std::uint64_t kThread = LastAccess::kThreadBits;
  if (shadow_.view().state(address) != kUntouched &&
      (shadow_.view().word(address) & kThread) != (word & kThread)) {
    share(address);
    return true;
  }
  // What cannot be remembered passes.
  return !shadow_.set(address, state_of(thread), word);
}

// Granule by granule, an access like this one, but there and by this thread. Whether it passes.
bool SharedFilter::touch(const Event& event, Address address, ThreadId thread) {
  if (event.size == 0) return false;
  const Address end = address + event.size;
  if (!Shadow::covers(address) || !Shadow::covers(end)) return true;
  bool shared = false;
  for (Address at = address; at < end;) {
    const Address next = std::min(end, (at & ~kGranuleMask) + kGranuleMask + 1);
    shared |= touch_granule(at, LastAccess::pack(event, next - at), thread);
    at = next;
  }
  return shared;
}

void SharedFilter::take(const Event& event) {
  if (is_access(event.kind)) {
    ++accesses_;
    if (!touch(event, event.address, event.thread)) return;
  } else if (event.kind == EventKind::kAlloc) {
    shadow_.clear(event.address, event.value);
  }
  events_.add(event);
}

void SharedFilter::take(std::span<const Event> events) {
  for (const Event& event : events) take(event);
}

void SharedFilter::on(std::span<const Event> batch, EventOrdinal) {
  take(batch);
  if (events_.size() == 0) return;
  next_.on(events_.events(), ordinal_);
  ordinal_ += events_.size();
  events_.clear();
}

// ---- executions -------------------------------------------------------------------------------

void SharedFilter::place_events() {
  executions_[used_++] = Execution::events(static_cast<std::uint32_t>(events_.size() - placed_));
  placed_ = events_.size();
}

void SharedFilter::hand_over() {
  if (placed_ != events_.size()) place_events();
  if (used_ == 0) return;
  ordinal_ = next_.on_executions({{executions_.data(), used_}, events_.events(), shapes_, false},
                                 ordinal_);
  used_ = 0;
  events_.clear();
  placed_ = 0;
}

void SharedFilter::make_room() {
  if (placed_ != events_.size()) place_events();
  if (used_ >= kRoom) hand_over();
}

void SharedFilter::expect(std::span<const RecordShape* const> shapes) {
  shapes_ = shapes;
}

void SharedFilter::segment(const Form& form, const Execution& execution) {
  std::uint32_t passing = 0;
  if (form.code == Form::kManyItems ||
      !look({forms_.looks() + form.looks, form.look_count}, execution, &passing)) {
    piece_by_piece(execution);
    return;
  }
  accesses_ += form.items;
  if (passing == 0) return;
  add(execution);
  executions_[used_ - 1].items = passing == form.all ? Execution::kAll : passing;
}

// Which items pass, if looks are enough to tell. Where they are not, nothing is lost by what was
// remembered so far: the granules were this thread's or nobody's, or are shared now, and all of the
// accesses come again.
bool SharedFilter::look(std::span<const Look> looks, const Execution& execution,
                        std::uint32_t* passing) {
  for (const Look& one : looks) {
    const Address address = one.offset + execution.words[one.base];
    const bool passes = (address & one.unlikely) == 0
                            ? touch_granule(address, one.last, execution.who)
                            : all_shared(address, one.size);
    if (passes) {
      *passing |= one.items;
    } else if ((address & one.unlikely) != 0) {
      return false;
    }
  }
  return true;
}

void SharedFilter::piece_by_piece(const Execution& execution) {
  const RecordShape& shape = *shapes_[execution.shape];
  const bool call = shape.kind == RecordShape::Kind::kCall;
  accesses_ += shape.items.size();
  if (call) events_.add(enter_of(shape, execution));
  for (const ShapeItem& item : shape.items) {
    Event event = item.event;
    event.thread = execution.who;
    event.address = address_of(item, execution.words);
    if (touch(event, event.address, event.thread)) events_.add(event);
  }
  if (call) events_.add(leave_of(shape, execution));
}

// A segment with sizes that only its record tells; what is nothing, or too much for one event, is
// for others.
bool SharedFilter::ranges(std::span<const CompiledItem> items, const std::uint64_t* words,
                          ThreadId thread) {
  constexpr std::uint64_t kMost = 1u << 30;
  for (const CompiledItem& item : items) {
    if (size_of(item, words) - 1 >= kMost - 1) return false;
  }
  accesses_ += items.size();
  for (const CompiledItem& item : items) {
    Event event = item.event;
    event.thread = thread;
    event.address = item.event.address + words[item.base];
    event.size = size_of(item, words) & (kMost - 1);
    if (touch(event, event.address, thread)) events_.add(event);
  }
  return true;
}

bool SharedFilter::all_shared(Address first, std::uint64_t size) const {
  const Address last = first + size - 1;
  return size != 0 && first <= last && Shadow::covers(last) && shadow_.all(first, last, kShared);
}

// All granules that the item touches in so many rounds are shared.
bool SharedFilter::all_shared(const LoopWalk::Moving& item, std::uint64_t size,
                              std::uint64_t rounds) const {
  if (rounds == 0) return true;
  const auto step = static_cast<std::int64_t>(item.step);
  std::int64_t way;
  if (__builtin_mul_overflow(step, static_cast<std::int64_t>(rounds - 1), &way)) return false;
  const Address last = item.address + static_cast<std::uint64_t>(way);
  const Address from = std::min(item.address, last);
  const Address to = std::max(item.address, last) + size - 1;
  if (size == 0 || to < from || !Shadow::covers(to)) return false;
  const bool dense = step >= -8 && step <= 8;
  if (dense) return shadow_.all(from, to, kShared);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Address at = item.address + round * item.step;
    if (!shadow_.all(at, at + size - 1, kShared)) return false;
  }
  return true;
}

// Whether all that the loop touches is shared, and it can be.
bool SharedFilter::all_shared(const RecordShape& loop, const std::uint64_t* record) const {
  const std::uint64_t rounds = record[1];
  if (rounds == 0 || rounds > LoopWalk::kMostRounds) return false;
  for (std::size_t i = 0; i < loop.items.size(); ++i) {
    const bool in_last_round = i < loop.always;
    if (!all_shared(LoopWalk::moving(loop, i, record), loop.items[i].event.size,
                    in_last_round ? rounds : rounds - 1)) {
      return false;
    }
  }
  return true;
}

// A loop of which something is wrong, or that never ended, is for others.
bool SharedFilter::loop(const Execution& execution) {
  const RecordShape& shape = *shapes_[execution.shape];
  if (all_shared(shape, execution.words)) {
    accesses_ += accesses_of_loop(shape, execution.words);
    add(execution);
    return true;
  }
  if (static_cast<std::int64_t>(execution.words[1]) < 0 || !loop_.begin(shape, execution.words) ||
      !loop_.under_way()) {
    return false;
  }
  accesses_ += loop_.accesses();
  constexpr std::uint64_t kPiece = 1024;
  const auto pass = [&](std::size_t item, Address address) {
    const Event& event = shape.items[item].event;
    const Address last = address + event.size - 1;
    const bool passes =
        (address ^ last) <= kGranuleMask && Shadow::covers(last)
            ? touch_granule(address, LastAccess::pack(event, event.size), execution.who)
            : touch(event, address, execution.who);
    if (!passes) return;
    Event* const passed = events_.room(1);
    *passed = event;
    passed->thread = execution.who;
    passed->address = address;
    events_.added(1);
  };
  while (loop_.under_way()) {
    loop_.walk(pass, kPiece);
    hand_over();
  }
  return true;
}

}  // namespace heddle::collect
