#include "collect/decoder.h"

#include "base/check.h"
#include "collect/stretch.h"
#include "trace/catalog_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace heddle::collect {
namespace {

constexpr std::uint32_t kLargestRange = 0x7fffffffu;  // Event::size has 31 bits

unsigned record_of(std::uint64_t header) {
  return static_cast<unsigned>(header >> 56);
}
unsigned words_of(std::uint64_t header) {
  return (header >> 40) & 0xff;
}
std::uint32_t small_of(std::uint64_t header) {
  return static_cast<std::uint32_t>(header);
}

// The record after one of so many words behind its header. Where the next one begins is what
// everything waits for: as a sum it would be known when the slot has been read, as a jump the
// processor foresees it, for programs do the same again and again.
inline const std::uint64_t* behind(const std::uint64_t* record, unsigned words) {
  const auto step = [record](std::size_t length) {
    const std::uint64_t* next = record + length;
    asm volatile("" : "+r"(next));  // keeps the compiler from making it a sum again
    return next;
  };
  switch (words) {
    case 0:
      return step(1);
    case 1:
      return step(2);
    case 2:
      return step(3);
    case 3:
      return step(4);
    case 4:
      return step(5);
    default:
      return record + words + 1;
  }
}

// Accesses to nothing at all, or to more than one event can tell, are for others.
bool are_believable(std::span<const ShapeItem> ranges, const std::uint64_t* record) {
  for (const ShapeItem& item : ranges) {
    if (item.size_word != 0 && record[item.size_word] - 2 >= kLargestRange) return false;
  }
  return true;
}

bool known_kind(unsigned kind) {
  switch (static_cast<EventKind>(kind)) {
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kRmw:
    case EventKind::kFence:
    case EventKind::kAcquire:
    case EventKind::kRelease:
    case EventKind::kWait:
    case EventKind::kSignal:
    case EventKind::kBroadcast:
    case EventKind::kSemPost:
    case EventKind::kSemWait:
    case EventKind::kBarrierArrive:
    case EventKind::kBarrierLeave:
    case EventKind::kOnceBegin:
    case EventKind::kOnceEnd:
    case EventKind::kOncePass:
    case EventKind::kOrderRelease:
    case EventKind::kOrderAcquire:
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
    case EventKind::kIoRead:
    case EventKind::kIoWrite:
      return true;
    default:
      return false;
  }
}

}  // namespace

Decoder::Decoder(Catalog& catalog, bool flow, ReadSide read_side)
    : catalog_(catalog),
      flow_(flow),
      read_side_(std::move(read_side)),
      units_(catalog),
      native_sites_(catalog) {
  go_to(0);
}

void Decoder::go_to(ThreadId thread) {
  thread_ = thread;
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  if (thread >= catalog_.threads.size()) catalog_.threads.resize(thread + 1);
  state_ = &threads_[thread];
}

Status Decoder::decode(std::span<const std::uint64_t> words, Tail tail, EventBuffer& out,
                       std::size_t& at) {
  units_.forget_removed();
  placed_ = out.size();
  const Status status = decode_from(words, tail, out, at);
  place_events(out);
  return status;
}

Status Decoder::decode_from(std::span<const std::uint64_t> words, Tail tail, EventBuffer& out,
                            std::size_t& position) {
  std::size_t at = std::exchange(position, words.size());
  bool resumed = false;
  while (at < words.size()) {
    if (loop_.under_way()) {
      expand_loop(out);
      if (loop_.under_way()) {
        position = at;
        break;
      }
      at += loop_words_;
      continue;
    }
    if (tail == Tail::kWhole && !resumed) at = common_records(words, at, out);
    if (at >= words.size()) break;
    if (full(out) && !resumed) {
      position = at;
      break;
    }
    const std::uint64_t header = words[at];
    if (header == 0 || record_of(header) == HEDDLE_REC_SKIP) break;
    Result<std::size_t> used{std::size_t{0}};
    if (record_of(header) == 0) {
      used = slot_record(words.subspan(at), tail, resumed, out);
      resumed = false;
    } else {
      if (words_of(header) >= words.size() - at) return Error{"a record does not fit its block"};
      resumed = record_of(header) == HEDDLE_REC_CONTINUE;
      used = runtime_record(words.subspan(at), tail, out);
    }
    if (!used.ok()) return used.error();
    at += *used;
  }
  return Done{};
}

void Decoder::add_segment(SegmentId segment, EventBuffer& out) {
  Event* event = out.room(1);
  *event = Event{};
  event->kind = EventKind::kSegment;
  event->thread = thread_;
  event->value = segment;
  out.added(1);
}

// The slot's, after those that it implies.
void Decoder::add_segments(const Unit& unit, const CompiledSlot& slot, EventBuffer& out) {
  for (const SegmentId before : unit.implied[slot.implied]) add_segment(before, out);
  add_segment(slot.id, out);
}

// The records that nearly all of a trace consists of, from word `at` on. Returns where one stands
// that takes the way of all others, or where the batch is full.
//
// Events are made where they stay: one that is put together elsewhere and then copied stalls the
// processor, because the copy's wide loads have to wait for the narrow stores before them.
std::size_t Decoder::common_records(std::span<const std::uint64_t> words, std::size_t at,
                                    EventBuffer& out) {
  if (filter_ != nullptr) {
    place_events(out);
    Stretch stretch(*filter_, units_, thread_, state_->calls, words.data() + words.size());
    while (true) {
      at = static_cast<std::size_t>(stretch.judge(words.data() + at) - words.data());
      const std::size_t length = event_at(words, at);
      if (length == 0) return at;
      stretch.aside([&] {
        event(words[at], words.subspan(at + 1, length - 1), out);
        place_events(out);
      });
      at += length;
    }
  }
  if (executions_ != nullptr) {
    place_events(out);
    return executions(words, at);
  }
  while (at < words.size() && !full(out)) {
    const std::uint64_t header = words[at];
    if (header == 0 || record_of(header) != 0) break;
    const Unit* unit = units_.find(header);
    const CompiledSlot* slot = unit != nullptr ? unit->slot_at(header) : nullptr;
    if (slot == nullptr || slot->words >= words.size() - at) break;
    const std::uint64_t* record = words.data() + at;
    if (slot->simple) {
      if (flow_) add_segments(*unit, *slot, out);
      Event* event = out.room(slot->item_count);
      for (const ShapeItem& item : units_.shapes()[slot->shape]->items) {
        *event = item.event;
        event->thread = thread_;
        event->address = address_of(item, record);
        ++event;
      }
      out.added(slot->item_count);
    } else if (slot->kind == HEDDLE_SLOT_ENTER) {
      enter(*slot, record, out);
    } else if (slot->kind == HEDDLE_SLOT_LEAVE) {
      leave(slot->id, out);
    } else if (slot->kind == HEDDLE_SLOT_FLOW_SEGMENT) {
      if (flow_) add_segments(*unit, *slot, out);
    } else if (slot->kind == HEDDLE_SLOT_JOINED) {
      segment_slowly(*unit, *slot, words.subspan(at, std::size_t{1} + slot->words), Tail::kWhole,
                     false, out);
    } else {
      break;
    }
    at += std::size_t{1} + slot->words;
  }
  return at;
}

// How many words the record has, if it is an event of the runtime's: locks and memory come between
// segments all the time, and change nothing that a stretch depends on. Else 0.
std::size_t Decoder::event_at(std::span<const std::uint64_t> words, std::size_t at) {
  if (at >= words.size() || record_of(words[at]) != HEDDLE_REC_EVENT) return 0;
  const std::size_t count = words_of(words[at]);
  return count >= kEventWords && count < words.size() - at ? count + 1 : 0;
}

void Decoder::place_events(EventBuffer& out) {
  if (placed_ == out.size()) return;
  if (filter_ != nullptr) {
    filter_->take(out.events());
    out.clear();
  } else if (executions_ != nullptr) {
    executions_->add(Execution::events(static_cast<std::uint32_t>(out.size() - placed_)));
  }
  placed_ = out.size();
}

// The same records, left as they are. This loop is part of what watching a program costs, so what
// it works with stands in local variables: a store of an execution could be one to any member.
std::size_t Decoder::executions(std::span<const std::uint64_t> words, std::size_t at) {
  constexpr std::ptrdiff_t kAhead = 128;  // words; the program wrote them on another processor
  const std::uint64_t* record = words.data() + at;
  const std::uint64_t* const end = words.data() + words.size();
  auto& calls = state_->calls;
  const bool flow = flow_;
  const ThreadId thread = thread_;
  std::uint64_t slots_begin = 0;
  std::uint64_t slot_count = 0;
  const CompiledSlot* slots = nullptr;
  const CompiledCall* whole_calls = nullptr;
  const std::vector<Joined>* all_joined = nullptr;
  Execution* to = executions_->data() + executions_->size();
  const Execution* const room_end = executions_->data() + ExecutionBuffer::kRoom;
  while (record < end && to < room_end) {
    __builtin_prefetch(record + kAhead);
    const std::uint64_t header = *record;
    const std::uint64_t number = std::rotr(header - slots_begin, 3);
    if (number >= slot_count) {
      const Unit* unit = record_of(header) == 0 ? units_.find(header) : nullptr;
      if (unit == nullptr || unit->slot_at(header) == nullptr) break;
      slots_begin = unit->slots_begin;
      slot_count = unit->slots.size();
      slots = unit->slots.data();
      whole_calls = unit->calls.data();
      all_joined = &unit->joined;
      continue;
    }
    const CompiledSlot& slot = slots[number];
    if (slot.words >= end - record) break;
    if (slot.joined != 0) {
      const Joined& joined = (*all_joined)[slot.joined - 1];
      if (!flow) {
        if (joined.shape != 0) *to++ = Execution::of(joined.shape, thread, record);
      } else {
        for (const JoinedExecution& part : joined.flow) {
          *to++ = Execution::of(part.shape, thread, record + part.shift, part.site);
        }
      }
      record += std::size_t{1} + slot.words;
      continue;
    }
    if (slot.shape == 0) {
      if (slot.ranges == 0) break;
      if (!are_believable(units_.shapes()[slot.ranges]->items, record)) break;
      *to++ = Execution::of(slot.ranges, thread, record);
      record = behind(record, slot.words);
      continue;
    }
    SiteId site = 0;
    if (slot.kind == HEDDLE_SLOT_ENTER) {
      site = units_.site_of_flag(record[1]);
      if (slot.call != 0 && !flow) {
        const CompiledCall& call = whole_calls[slot.call - 1];
        if (call.leave_at < end - record && record[call.segment_at] == call.segment &&
            record[call.leave_at] == call.leave) {
          *to++ = Execution::of(call.shape, thread, record, site);
          record += call.leave_at + 1;
          continue;
        }
      }
      calls.push({.function = slot.id, .frame = slot.has_frame ? record[slot.words] : 0});
    } else if (slot.kind == HEDDLE_SLOT_LEAVE) {
      if (calls.empty() || calls.back().function != slot.id) break;
      calls.pop();
    } else if (slot.kind == HEDDLE_SLOT_LOOP) {
      // Loops of which something is wrong, and those of programs that do not know their level.
      const std::uint64_t rounds = record[1];
      const RecordShape& shape = *units_.shapes()[slot.shape];
      if ((flow && shape.parts.empty()) || static_cast<std::int64_t>(rounds) < 0) break;
      const auto length = static_cast<unsigned>(slot.words + LoopWalk::gathered(shape, rounds));
      if (length >= end - record || !checked_loop_.begin(shape, record)) break;
      if (!checked_loop_.under_way()) break;
      *to++ = Execution::of(slot.shape, thread, record);
      record = behind(record, length);
      continue;
    } else if (slot.kind == HEDDLE_SLOT_FLOW_SEGMENT && !flow) {
      record += std::size_t{1} + slot.words;
      continue;
    }
    *to++ = Execution::of(slot.shape, thread, record, site);
    record = behind(record, slot.words);
  }
  executions_->resize(static_cast<std::size_t>(to - executions_->data()));
  return static_cast<std::size_t>(record - words.data());
}

// The segments of the loop that is under way that begin with this item.
void Decoder::add_part(std::size_t item, EventBuffer& out) {
  for (const LoopPart& part : loop_shape_->parts) {
    if (part.begin != item) continue;
    const RecordShape& segment = *units_.shapes()[part.shape];
    for (const SegmentId before : segment.before) add_segment(before, out);
    add_segment(segment.id, out);
  }
}

void Decoder::expand_loop(EventBuffer& out) {
  const auto add = [&](std::size_t item, Address address) {
    if (flow_) add_part(item, out);
    Event* event = out.room(1);
    *event = loop_shape_->items[item].event;
    event->thread = thread_;
    event->address = address;
    out.added(1);
  };
  loop_.walk(add, kBatch);
}

Result<std::size_t> Decoder::slot_record(std::span<const std::uint64_t> words, Tail tail,
                                         bool resumed, EventBuffer& out) {
  const std::uint64_t address = words[0] & ~std::uint64_t{1};
  const bool paused = (words[0] & 1) != 0;
  const Unit* unit = units_.find(address);
  const CompiledSlot* found = unit != nullptr ? unit->slot_at(address) : nullptr;
  if (found == nullptr) {
    return Error{fmt::format("a record names a slot at {:#x} that no unit has", address)};
  }
  const CompiledSlot& slot = *found;
  const std::size_t size = std::size_t{1} + slot.words + (paused ? 1 : 0);
  if (size > words.size()) return Error{"a record does not fit its block"};
  switch (slot.kind) {
    case HEDDLE_SLOT_SEGMENT:
    case HEDDLE_SLOT_JOINED:
      segment_slowly(*unit, slot, words.first(size), tail, resumed, out);
      break;
    case HEDDLE_SLOT_FLOW_SEGMENT:
      if (flow_) add_segments(*unit, slot, out);
      break;
    case HEDDLE_SLOT_ENTER:
      enter(slot, words.data(), out);
      break;
    case HEDDLE_SLOT_LEAVE:
      leave(slot.id, out);
      break;
    case HEDDLE_SLOT_RESYNC:
      resync(slot, words[slot.words], out);
      break;
    case HEDDLE_SLOT_LIBCALL:
      state_->libcall = slot.id;
      break;
    case HEDDLE_SLOT_LOOP:
      return loop_record(slot, words);
    default:
      return Error{
          fmt::format("a record names a slot at {:#x} that is a part of another", address)};
  }
  return size;
}

// Returns 0 if its accesses are yet to be made.
Result<std::size_t> Decoder::loop_record(const CompiledSlot& slot,
                                         std::span<const std::uint64_t> words) {
  loop_shape_ = units_.shapes()[slot.shape];
  const bool paused = (words[0] & 1) != 0;
  const std::uint64_t rounds = words[1];
  const bool ended = static_cast<std::int64_t>(rounds) >= 0;
  // The target died in it: nothing follows.
  if (!ended && !paused && loop_shape_->round_words != 0) return words.size();
  const std::uint64_t gathered =
      ended ? LoopWalk::gathered(*loop_shape_, rounds)
            : std::min(~rounds, LoopWalk::kMostGathered) * loop_shape_->round_words;
  const std::uint64_t size = std::uint64_t{1} + slot.words + gathered + (paused ? 1 : 0);
  if (size > words.size()) return Error{"the record of a loop does not fit its block"};
  if (!loop_.begin(*loop_shape_, words.data(),
                   paused ? std::optional(words[size - 1]) : std::nullopt)) {
    return Error{fmt::format("the record of a loop at {:#x} says what cannot be",
                             words[0] & ~std::uint64_t{1})};
  }
  if (!loop_.under_way()) return size;
  loop_words_ = size;
  return std::size_t{0};
}

// An access to a range, split where Event::size ends. Nothing is longer than the address space.
void Decoder::add_range(Event event, std::uint64_t length, EventBuffer& out) {
  if (length >> 47 != 0) return;
  while (length > 0) {
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kLargestRange));
    event.size = part & kLargestRange;
    out.add(event);
    event.address += part;
    length -= part;
  }
}

void Decoder::segment_slowly(const Unit& unit, const CompiledSlot& slot,
                             std::span<const std::uint64_t> words, Tail tail, bool resumed,
                             EventBuffer& out) {
  const bool paused = (words[0] & 1) != 0;
  const std::uint64_t header = words[0] & ~std::uint64_t{1};
  const std::uint64_t flag = paused ? words[words.size() - 1] - unit.flags_begin : 0;
  const bool flag_known = paused && words[words.size() - 1] != 0;
  // A word may be missing where the target died or a handler interrupted the segment.
  const bool may_miss = tail == Tail::kCut || paused;
  const auto items = unit.items_of(slot);
  const std::size_t first = resumed ? std::min<std::size_t>(state_->paused_item, items.size()) : 0;
  if (flow_ && !resumed && slot.joined == 0) add_segments(unit, slot, out);
  std::span<const JoinedEvent> between;
  if (slot.joined != 0) between = unit.joined[slot.joined - 1].events;
  const auto add_between = [&](std::size_t item, bool now) {
    for (; !between.empty() && between[0].item <= item; between = between.subspan(1)) {
      if (now) joined_event(between[0], words, out);
    }
  };
  // The segments that it begins with are known to have begun, whether or not it paused.
  while (!between.empty() && between[0].item == 0 &&
         between[0].kind == JoinedEvent::Kind::kSegment) {
    if (!resumed) joined_event(between[0], words, out);
    between = between.subspan(1);
  }
  if (first > 0) add_between(first - 1, false);
  std::size_t i = first;
  for (; i < items.size(); ++i) {
    const CompiledItem& item = items[i];
    // A joined record may have the same site more than once: it paused where no word follows yet.
    const bool is_next = item.words > slot.words || words[item.words] == 0;
    if (flag_known && item.flag == flag && is_next && !(resumed && i == first)) break;
    const std::uint64_t base = item.base == 0 ? header : words[item.base];
    if (may_miss && base == 0) break;
    if (may_miss && item.next > item.words && words[item.next - 1u] == 0) break;
    add_between(i, true);
    Event* const event = out.room(1);  // where it stays: see common_records
    *event = item.event;
    event->thread = thread_;
    event->address = item.no_address ? 0 : item.event.address + base;
    if (item.outcome && words[item.next - 1u] == 1) {
      event->kind = EventKind::kRead;
      event->order = item.failure_order;
    }
    if (!item.dynamic_size) {
      out.added(1);
      continue;
    }
    const std::uint64_t length_plus_one = words[item.next - (item.outcome ? 2u : 1u)];
    if (length_plus_one <= 1) continue;
    if (length_plus_one - 1 > kLargestRange) {
      add_range(Event(*event), length_plus_one - 1, out);
      continue;
    }
    event->size = (length_plus_one - 1) & kLargestRange;
    out.added(1);
  }
  if (i == items.size()) add_between(i, true);
  state_->paused_item = static_cast<std::uint32_t>(i);
}

void Decoder::joined_event(const JoinedEvent& joined, std::span<const std::uint64_t> words,
                           EventBuffer& out) {
  switch (joined.kind) {
    case JoinedEvent::Kind::kSegment:
      if (flow_) add_segment(joined.id, out);
      break;
    case JoinedEvent::Kind::kEnter:
      enter(joined.id, joined.site, joined.object != 0 ? words[joined.object] : 0, 0, out);
      break;
    case JoinedEvent::Kind::kLeave:
      leave(joined.id, out);
      break;
  }
}

Result<std::size_t> Decoder::runtime_record(std::span<const std::uint64_t> words, Tail,
                                            EventBuffer& out) {
  const std::uint64_t header = words[0];
  const std::size_t count = words_of(header);
  const auto rest = words.subspan(1, count);
  const auto needs = [count](std::size_t least) { return count >= least; };
  bool fits = true;
  switch (record_of(header)) {
    case HEDDLE_REC_EVENT:
      fits = needs(kEventWords);
      if (fits) event(header, rest, out);
      break;
    case HEDDLE_REC_SWITCH:
      if (small_of(header) >= kMaxThreads) return Error{"a switch to a thread that cannot be"};
      go_to(small_of(header));
      break;
    case HEDDLE_REC_CONTINUE:
      break;
    case HEDDLE_REC_UNIT:
      fits = needs(3);
      if (fits) {
        if (Status status = unit(rest); !status.ok()) return status.error();
      }
      break;
    case HEDDLE_REC_UNLOAD:
      fits = needs(1);
      if (fits) units_.remove(rest[0]);
      break;
    case HEDDLE_REC_TEXT:
      fits = needs(2);
      if (fits) text(header, rest, out);
      break;
    case HEDDLE_REC_DECISION:
      fits = needs(2);
      if (fits) decisions_.push_back({rest[0], static_cast<ThreadId>(rest[1])});
      break;
    case HEDDLE_REC_STACK:
      fits = needs(1);
      if (fits) {
        stacks_.push_back({static_cast<ThreadId>(rest[0]), {rest.begin() + 1, rest.end()}});
      }
      break;
    case HEDDLE_REC_MODULE:
      fits = needs(4) && rest[3] <= (count - 4) * 8;
      if (fits) {
        native_sites_.add_module(
            std::string(reinterpret_cast<const char*>(rest.data() + 4), rest[3]), rest[0], rest[1],
            rest[2]);
      }
      break;
    default:
      return Error{
          fmt::format("a record of kind {:#x} that this version does not know", record_of(header))};
  }
  if (!fits) return Error{fmt::format("a record of kind {:#x} is too short", record_of(header))};
  return count + 1;
}

void Decoder::event(std::uint64_t header, std::span<const std::uint64_t> words, EventBuffer& out) {
  const unsigned kind = (header >> 48) & 0xff;
  if (!known_kind(kind)) return;
  const unsigned mode = (header >> 36) & 0xf;
  const unsigned outcome = (header >> 32) & 0xf;
  if (static_cast<EventKind>(kind) == EventKind::kThreadEnd) pop_to(0, out);
  Event& event = *out.room(1);
  event = Event{};
  event.kind = static_cast<EventKind>(kind);
  event.thread = thread_;
  event.address = words[0];
  event.value = words[1];
  event.outcome = outcome > 2 ? OpOutcome::kFailed : static_cast<OpOutcome>(outcome);
  event.site = words[2] != 0 ? native_sites_.site(words[2], event.kind) : SiteId{0};
  if (event.kind == EventKind::kFence || is_access(event.kind)) {
    event.order = mode > 6 ? MemoryOrder::kSeqCst : static_cast<MemoryOrder>(mode);
    if (event.site == 0) event.site = state_->libcall;
  } else {
    event.mode = mode != 0 ? LockMode::kShared : LockMode::kExclusive;
  }
  event.size = small_of(header) & kLargestRange;
  out.added(1);
}

void Decoder::text(std::uint64_t header, std::span<const std::uint64_t> words, EventBuffer& out) {
  const std::size_t length = std::min<std::uint64_t>(words[1], (words.size() - 2) * 8);
  const std::string_view text(reinterpret_cast<const char*>(words.data() + 2), length);
  // rt::TextKind of runtime/record.h.
  switch (words[0]) {
    case 1: {
      const ThreadId named = small_of(header) != 0 ? small_of(header) - 1 : thread_;
      if (named >= kMaxThreads) break;
      if (named >= catalog_.threads.size()) catalog_.threads.resize(named + 1);
      catalog_.threads[named].name = catalog_.strings.intern(text);
      break;
    }
    case 2: {
      Event event;
      event.kind = EventKind::kMark;
      event.thread = thread_;
      event.value = catalog_.strings.intern(text);
      out.add(event);
      break;
    }
    case 3:
    case 4:
      outcome_text_ = text;
      break;
    case 5:
      notes_.emplace_back(text);
      break;
    default:
      break;
  }
}

Status Decoder::unit(std::span<const std::uint64_t> words) {
  const std::vector<std::uint8_t> copy = read_side_(words[1], words[2]);
  if (copy.size() != words[2]) return Error{"a unit's description is missing"};
  saw_units_ = true;
  Status status = units_.add(words[0], copy);
  if (filter_ != nullptr) filter_->expect(units_.shapes());
  return status;
}

void Decoder::enter(const CompiledSlot& slot, const std::uint64_t* record, EventBuffer& out) {
  enter(slot.id, units_.site_of_flag(record[1]), slot.has_this ? record[2] : 0,
        slot.has_frame ? record[slot.words] : 0, out);
}

void Decoder::enter(FunctionId function, SiteId site, Address object, std::uint64_t frame,
                    EventBuffer& out) {
  state_->calls.push({.function = function, .frame = frame});
  Event* event = out.room(1);
  *event = Event{};
  event->kind = EventKind::kEnter;
  event->thread = thread_;
  event->site = site;
  event->address = object;
  event->value = function;
  out.added(1);
}

void Decoder::leave(FunctionId function, EventBuffer& out) {
  // What was left by an exception or a jump wrote nothing: it ends here at the latest.
  auto& calls = state_->calls;
  for (std::size_t depth = calls.size(); depth > 0; --depth) {
    if (calls[depth - 1].function != function) continue;
    pop_to(depth - 1, out);
    return;
  }
}

void Decoder::resync(const CompiledSlot& slot, std::uint64_t frame, EventBuffer& out) {
  auto& calls = state_->calls;
  for (std::size_t depth = calls.size(); depth > 0; --depth) {
    if (calls[depth - 1].function != slot.id || calls[depth - 1].frame != frame) continue;
    pop_to(depth, out);
    return;
  }
}

void Decoder::pop_to(std::size_t depth, EventBuffer& out) {
  auto& calls = state_->calls;
  for (; calls.size() > depth; calls.pop()) {
    Event* event = out.room(1);
    *event = Event{};
    event->kind = EventKind::kLeave;
    event->thread = thread_;
    event->value = calls.back().function;
    out.added(1);
  }
}

}  // namespace heddle::collect
