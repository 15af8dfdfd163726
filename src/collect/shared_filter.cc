#include "collect/shared_filter.h"

#include <algorithm>

namespace heddle::collect {

Event SharedFilter::unpack(std::uint64_t word, Address granule) {
  Event event;
  event.order = static_cast<MemoryOrder>(word >> 60 & 7);
  event.kind = static_cast<EventKind>(word >> 58 & 3);
  event.size = (word >> 55 & 7) + 1;
  event.address = granule + (word >> kOffsetShift & 7);
  event.thread = static_cast<ThreadId>((word & kThreadBits) >> kThreadShift);
  event.site = static_cast<SiteId>(word);
  return event;
}

// An access to one granule. Whether the granule is shared; the last private access of one that
// becomes shared by it passes.
bool SharedFilter::touch_granule(Address address, std::uint64_t packed, ThreadId thread) {
  Shadow::Chunk& chunk = shadow_.chunk(address);
  std::uint8_t& state = chunk.states[Shadow::place(address)];
  std::uint64_t& word = chunk.words[Shadow::place(address)];
  if (state == kShared) return true;
  const Owner mine = owner(thread);
  if (state != kUntouched && (word & kThreadBits) != mine.bits) {
    events_.add(unpack(word, address & ~kGranuleMask));
    state = kShared;
    return true;
  }
  state = mine.state;
  word = packed | mine.bits | (address & kGranuleMask) << kOffsetShift;
  return false;
}

// Granule by granule. Whether the access passes.
bool SharedFilter::touch(const Event& event) {
  if (event.size == 0) return false;
  const Address end = event.address + event.size;
  if (!Shadow::covers(event.address) || !Shadow::covers(end)) return true;
  bool shared = false;
  for (Address at = event.address; at < end;) {
    const Address next = std::min(end, (at & ~kGranuleMask) + kGranuleMask + 1);
    const std::uint64_t packed = pack(event.kind, event.order, event.site, next - at);
    shared |= touch_granule(at, packed, event.thread);
    at = next;
  }
  return shared;
}

void SharedFilter::take(const Event& event) {
  if (is_access(event.kind)) {
    ++accesses_;
    if (!touch(event)) return;
  } else if (event.kind == EventKind::kAlloc) {
    shadow_.clear(event.address, event.value);
  }
  events_.add(event);
}

void SharedFilter::on(std::span<const Event> batch, EventOrdinal) {
  for (const Event& event : batch) take(event);
  if (events_.size() == 0) return;
  next_.on(events_.events(), ordinal_);
  ordinal_ += events_.size();
  events_.clear();
}

// ---- executions -------------------------------------------------------------------------------

void SharedFilter::place_events() {
  if (placed_ == events_.size()) return;
  *executions_end_++ = Execution::events(static_cast<std::uint32_t>(events_.size() - placed_));
  placed_ = events_.size();
}

void SharedFilter::hand_over() {
  place_events();
  if (executions_end_ != executions_.data()) {
    ordinal_ = next_.on_executions(
        {{executions_.data(), executions_end_}, events_.events(), batch_.shapes, false}, ordinal_);
  }
  executions_end_ = executions_.data();
  events_.clear();
  placed_ = 0;
}

// Items that access the same bytes share a look. Looks are in the order of their last accesses, so
// that where several meet in one granule, the last access of all is remembered.
void SharedFilter::compile(ShapeId id, const RecordShape& shape) {
  Known& made = known_[id];
  made = {.first = static_cast<std::uint32_t>(looks_.size()),
          .items = static_cast<std::uint32_t>(shape.items.size()),
          .all = shape.items.size() >= Execution::kMostBits
                     ? Execution::kAll
                     : (std::uint32_t{1} << shape.items.size()) - 1,
          .kind = shape.kind,
          .compiled = true,
          .piecemeal = shape.items.size() > Execution::kMostBits};
  if (shape.kind == RecordShape::Kind::kLoop || made.piecemeal) return;
  for (std::size_t i = shape.items.size(); i-- > 0;) {
    const ShapeItem& item = shape.items[i];
    const Event& event = item.event;
    const bool fits = event.size == 1 || event.size == 2 || event.size == 4 || event.size == 8;
    const std::uint64_t unlikely =
        fits ? ~((Address{1} << Shadow::kAddressBits) - 1) | (event.size - 1) : ~std::uint64_t{0};
    const auto same = [&](const Look& look) {
      return look.offset == event.address && look.base == item.base && look.unlikely == unlikely;
    };
    const auto begin = looks_.begin() + made.first;
    const auto found = std::find_if(begin, looks_.end(), same);
    if (found != looks_.end()) {
      found->items |= std::uint32_t{1} << i;
      continue;
    }
    looks_.push_back({.offset = event.address,
                      .base = item.base,
                      .items = std::uint32_t{1} << i,
                      .unlikely = unlikely,
                      .last = fits ? pack(event.kind, event.order, event.site, event.size) : 0});
  }
  made.count = static_cast<std::uint32_t>(looks_.size()) - made.first;
  std::reverse(looks_.begin() + made.first, looks_.end());
}

// Where it is not, nothing is lost by what was remembered so far: the granules were this thread's
// or nobody's, and all of the segment's accesses come again.
inline bool SharedFilter::look(const Known& segment, const std::uint64_t* words, Owner mine,
                               std::uint32_t* passing) {
  std::uint32_t shared = 0;
  const Look* const looks = looks_.data() + segment.first;
  for (std::uint32_t i = 0; i < segment.count; ++i) {
    const Look& one = looks[i];
    const Address address = one.offset + words[one.base];
    if ((address & one.unlikely) != 0) return false;
    Shadow::Chunk& chunk = shadow_.chunk(address);
    const std::size_t place = Shadow::place(address);
    std::uint8_t& state = chunk.states[place];
    if (state == kShared) {
      shared |= one.items;
      continue;
    }
    if (state != mine.state) {
      if (state != kUntouched) return false;
      state = mine.state;
    }
    chunk.words[place] = one.last | mine.bits | (address & kGranuleMask) << kOffsetShift;
  }
  *passing = shared;
  return true;
}

void SharedFilter::piece_by_piece(const RecordShape& shape, const Execution& execution) {
  const bool call = shape.kind == RecordShape::Kind::kCall;
  if (call) events_.add(enter_of(shape, execution));
  for (const ShapeItem& item : shape.items) {
    Event event = item.event;
    event.thread = execution.who;
    event.address = address_of(item, execution.words);
    if (touch(event)) events_.add(event);
  }
  if (call) events_.add(leave_of(shape, execution));
}

// All granules that the item touches in so many rounds are shared.
bool SharedFilter::all_shared(const LoopWalk::Moving& item, std::uint64_t size,
                              std::uint64_t rounds) {
  if (rounds == 0) return true;
  const auto step = static_cast<std::int64_t>(item.step);
  const Address last = item.address + (rounds - 1) * item.step;
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

void SharedFilter::walk(const RecordShape& loop, const Execution& execution) {
  if (!loop_.begin(loop, execution.words)) return;
  accesses_ += loop_.accesses();
  bool shared = true;
  for (std::size_t i = 0; i < loop.items.size() && shared; ++i) {
    shared = all_shared(loop_.items()[i], loop.items[i].event.size,
                        loop_.rounds() + (i < loop_.rest() ? 1 : 0));
  }
  if (shared) {
    add(execution);
    return;
  }
  constexpr std::uint64_t kPiece = 1024;
  const auto pass = [&](std::size_t item, Address address) {
    Event event = loop.items[item].event;
    event.thread = execution.who;
    event.address = address;
    if (touch(event)) events_.add(event);
  };
  while (loop_.under_way()) {
    loop_.walk(pass, kPiece);
    hand_over();
  }
}

EventOrdinal SharedFilter::on_executions(const ExecutionBatch& batch, EventOrdinal first) {
  if (batch.flow) return EventTaker::on_executions(batch, first);
  batch_ = batch;
  if (executions_.size() < 2 * batch.executions.size() + 2) {
    executions_.resize(2 * batch.executions.size() + 2);
  }
  executions_end_ = executions_.data();
  const std::uint64_t accesses_before = accesses_;
  EventOrdinal others = 0;
  std::span<const Event> events = batch.events;
  ThreadId thread = ~ThreadId{0};
  Owner mine{};
  std::uint64_t accesses =
      0;  // of segments; here, because a store to memory could be one to a member
  for (const Execution& execution : batch.executions) {
    if (execution.shape == 0) {
      for (const Event& event : events.first(execution.who)) {
        others += is_access(event.kind) ? 0 : 1;
        take(event);
      }
      events = events.subspan(execution.who);
      continue;
    }
    if (execution.who != thread) {
      thread = execution.who;
      mine = owner(thread);
    }
    const Known& seen = known(execution.shape);
    switch (seen.kind) {
      case RecordShape::Kind::kCall:
        others += 2;
        [[fallthrough]];
      case RecordShape::Kind::kSegment: {
        accesses += seen.items;
        std::uint32_t passing = 0;
        if (seen.piecemeal || mine.state == kSomebody ||
            !look(seen, execution.words, mine, &passing)) {
          piece_by_piece(*batch.shapes[execution.shape], execution);
        } else if (passing != 0) {
          add(execution);
          executions_end_[-1].items = passing == seen.all ? Execution::kAll : passing;
        }
        break;
      }
      case RecordShape::Kind::kLeave: {
        ++others;
        const bool nothing_between =
            placed_ == events_.size() && executions_end_ != executions_.data() &&
            executions_end_[-1].shape != 0 &&
            known_[executions_end_[-1].shape].kind == RecordShape::Kind::kEnter;
        if (nothing_between) {
          --executions_end_;
        } else {
          add(execution);
        }
        break;
      }
      case RecordShape::Kind::kEnter:
        ++others;
        add(execution);
        break;
      case RecordShape::Kind::kLoop:
        walk(*batch.shapes[execution.shape], execution);
        break;
    }
  }
  accesses_ += accesses;
  hand_over();
  return first + others + (accesses_ - accesses_before);
}

}  // namespace heddle::collect
