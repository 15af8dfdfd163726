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
  if (form.kind == Form::Kind::kManyItems ||
      !look({form.looks, form.look_count}, execution, &passing)) {
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
  walk_items(
      shape, execution, [&](const ShapeCall& one) { events_.add(enter_of(one, execution)); },
      [&](std::size_t i) {
        Event event = shape.items[i].event;
        event.thread = execution.who;
        event.address = address_of(shape.items[i], execution.words);
        if (touch(event, event.address, event.thread)) events_.add(event);
      },
      [&](const ShapeCall& one) { events_.add(leave_of(one, execution)); });
  if (call) events_.add(leave_of(shape, execution));
}

// A segment with sizes that only its record tells; what is nothing, or too much for one event, is
// for others.
bool SharedFilter::ranges(const Execution& execution) {
  constexpr std::uint64_t kMost = 1u << 30;
  const RecordShape& shape = *shapes_[execution.shape];
  for (const ShapeItem& item : shape.items) {
    const std::uint64_t size = item.size_word != 0 ? execution.words[item.size_word] - 1 : 1;
    if (size - 1 >= kMost - 1) return false;
  }
  accesses_ += shape.items.size();
  for (const ShapeItem& item : shape.items) {
    Event event = item.event;
    event.thread = execution.who;
    event.address = address_of(item, execution.words);
    event.size = size_of(item, execution.words) & (kMost - 1);
    if (touch(event, event.address, event.thread)) events_.add(event);
  }
  return true;
}

bool SharedFilter::all_shared(Address first, std::uint64_t size) const {
  const Address last = first + size - 1;
  return size != 0 && first <= last && Shadow::covers(last) &&
         shadow_.view().all(first, last, kShared);
}

// The way of a row, from its lowest byte to its highest one. Nothing is believed.
struct SharedFilter::Way {
  Address first;  // where the access of the first round begins …
  Address last;   // … and that of the last one
  std::int64_t step;
  Address from;
  Address to;

  bool fills(std::uint32_t size) const { return step == size || step == -std::int64_t{size}; }
  // No granule of one is one of the other.
  bool is_apart_from(const Way& other) const {
    if (from / 8 > other.to / 8 || to / 8 < other.from / 8) return true;
    const auto between = static_cast<std::int64_t>(first / 8 - other.first / 8);
    return step == other.step && step % 8 == 0 && step != 0 && between % (step / 8) != 0;
  }
};

// False: it cannot be. There is at least one round.
inline bool SharedFilter::way_of(const Row& row, const std::uint64_t* record, std::uint64_t rounds,
                                 Way& way) {
  way.first = row.offset + record[row.base];
  way.step =
      row.step.word != 0 ? static_cast<std::int64_t>(record[row.step.word]) : row.step.distance;
  std::int64_t distance;
  if (__builtin_mul_overflow(way.step, static_cast<std::int64_t>(rounds - 1), &distance)) {
    return false;
  }
  way.last = way.first + static_cast<std::uint64_t>(distance);
  way.from = std::min(way.first, way.last);
  way.to = std::max(way.first, way.last) + row.size - 1;
  return row.size != 0 && way.from <= way.to && Shadow::covers(way.to);
}

// All granules of the row are shared, and it can be.
bool SharedFilter::all_shared(const Row& row, const std::uint64_t* record, std::uint64_t rounds,
                              Shadow::View shadow) {
  if (!row.in_last_round) --rounds;
  if (rounds == 0) return true;
  Way way;
  if (!way_of(row, record, rounds, way)) return false;
  const bool dense = way.step >= -8 && way.step <= 8;
  if (dense) return shadow.all(way.from, way.to, kShared);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Address at = way.first + round * static_cast<std::uint64_t>(way.step);
    if (!shadow.all(at, at + row.size - 1, kShared)) return false;
  }
  return true;
}

// A loop over memory that nobody else has touched, as long as it is plain what the last access of
// every granule is: rows that share no granule, of accesses to one granule each. True: it was one,
// and is remembered.
bool SharedFilter::stays_private(const Form& form, const Execution& execution) {
  constexpr std::size_t kMostRows = 4;
  const std::uint8_t mine = state_of(execution.who);
  const std::uint64_t rounds = execution.words[1];
  if (form.count > kMostRows || mine == kSomebody || rounds < 2) return false;
  Way ways[kMostRows];
  for (std::size_t i = 0; i < form.count; ++i) {
    const Row& row = form.rows[i];
    Way& way = ways[i];
    const std::uint64_t its_rounds = row.in_last_round ? rounds : rounds - 1;
    if (row.last == 0 || !row.alike || !way_of(row, execution.words, its_rounds, way)) return false;
    if (way.first % row.size != 0 || way.step % std::int64_t{row.size} != 0) return false;
    if (!std::all_of(ways, ways + i, [&](const Way& other) { return way.is_apart_from(other); })) {
      return false;
    }
    if (!shadow_.view().all_or_nothing(way.from, way.to, mine)) return false;
  }
  for (std::size_t i = 0; i < form.count; ++i) {
    const std::uint64_t word = form.rows[i].last | LastAccess::of_thread(execution.who);
    if (!remember(ways[i], form.rows[i].size, mine, word)) return false;
  }
  return true;
}

bool SharedFilter::remember(const Way& way, std::uint32_t size, std::uint8_t mine,
                            std::uint64_t word) {
  if (!way.fills(size)) {
    const auto step = static_cast<std::uint64_t>(way.step);
    for (Address at = way.first; at != way.last; at += step) {
      if (!shadow_.set(at, mine, word | LastAccess::at(at))) return false;
    }
    return shadow_.set(way.last, mine, word | LastAccess::at(way.last));
  }
  const Address last_of_all = way.last & ~kGranuleMask;
  const Address last_of_each = way.step > 0 ? kGranuleMask + 1 - size : 0;
  return shadow_.set_all(way.from, way.to, mine, word | LastAccess::at(last_of_each)) &&
         shadow_.set(last_of_all, mine, word | LastAccess::at(way.last));
}

// The granules of others that a loop touches become everybody's, in the order in which it comes to
// them, before it runs. Whether all that it touches is shared then.
bool SharedFilter::share_rows(const Form& form, const Execution& execution) {
  constexpr std::size_t kMostRows = 16;
  const std::uint64_t rounds = execution.words[1];
  if (form.count > kMostRows || rounds - 1 >= LoopWalk::kMostRounds) return false;
  Way ways[kMostRows];
  for (std::size_t i = 0; i < form.count; ++i) {
    if (!way_of(form.rows[i], execution.words, rounds, ways[i])) return false;
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < form.count; ++i) {
      const Row& row = form.rows[i];
      if (round + 1 == rounds && !row.in_last_round) continue;
      const Address first = ways[i].first + round * static_cast<std::uint64_t>(ways[i].step);
      for (Address at = first & ~kGranuleMask; at < first + row.size; at += kGranuleMask + 1) {
        if (is_others(at, execution.who)) share(at);
      }
    }
    if (events_.size() >= kRoom) hand_over();
  }
  return std::all_of(form.rows, form.rows + form.count, [&](const Row& row) {
    return all_shared(row, execution.words, rounds, shadow_.view());
  });
}

void SharedFilter::round(std::span<const Lane> lanes, std::span<const Address> addresses,
                         const Execution& execution) {
  std::uint32_t passing = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (touch_granule(addresses[i], lanes[i].last, execution.who)) passing |= lanes[i].items;
  }
  if (passing == 0) return;
  add(execution);
  executions_[used_ - 1].items = passing;
}

// A loop of which something is wrong, or that never ended, is for others.
bool SharedFilter::loop(const Form& form, const Execution& execution) {
  const RecordShape& shape = *shapes_[execution.shape];
  if (static_cast<std::int64_t>(execution.words[1]) < 0 || !loop_.begin(shape, execution) ||
      !loop_.under_way()) {
    return false;
  }
  accesses_ += loop_.accesses();
  if (form.kind == Form::Kind::kLoop) {
    if (stays_private(form, execution)) return true;
    if (share_rows(form, execution)) {
      add(execution);
      return true;
    }
  }
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
