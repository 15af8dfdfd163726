#include "detect/avio/finder.h"

#include <algorithm>

namespace heddle::avio {

void TripleFinder::begin_turn(ThreadId thread, EventOrdinal ordinal) {
  if (ordinal - base_ > kMaxOrdinal) start_over(ordinal);
  const bool known = thread < actors_.size() && actors_[thread] != kNone;
  actor_ = known ? actors_[thread] : new_actor(thread);
  thread_ = thread;
  shadow_.begin_turn(actor_, ordinal - base_);
}

std::size_t TripleFinder::expect(std::span<const Execution> executions,
                                 std::span<const RecordShape* const> shapes, EventOrdinal ordinal) {
  const ThreadId thread = executions.front().who;
  go_on_with(thread, ordinal);
  make_room(ordinal);
  next_place_ = places_.data();
  Stamp** to = next_place_;
  Stamp** const full = to + (kPlaces - Pattern::kMostTouches);
  std::size_t items = 0;
  std::size_t count = 0;
  patterns_.make_room(shapes.size());
  for (const Execution& next : executions.first(std::min(executions.size(), kMostExecutions))) {
    if (to > full || next.shape == 0 || next.who != thread) break;
    if (next.items != Execution::kAll) break;
    const Pattern& pattern = patterns_.in_room(next.shape, *shapes[next.shape]);
    items += pattern.items + 2;
    if (pattern.kind == RecordShape::Kind::kLoop) {
      if (pattern.simple || next.words[1] > kMostRounds) break;
      items += next.words[1] * pattern.items;
    }
    if (items > kMostItems) break;
    ++count;
    if (pattern.simple) to = shadow_.find(pattern.touches, next.words, to);
  }
  shadow_.ask_for_histories({places_.data(), to});
  return count;
}

void TripleFinder::execute(const Execution& segment, const RecordShape& shape, EventOrdinal ordinal,
                           ContextId context) {
  make_room(ordinal);
  Pattern& pattern = patterns_.of(segment.shape, shape);
  next_place_ = places_.data();
  if (pattern.simple) shadow_.find(pattern.touches, segment.words, next_place_);
  execute_expected(pattern, segment, shape, ordinal, context);
}

// For all that is expected at a time: until it has come nothing may be started over.
void TripleFinder::make_room(EventOrdinal ordinal) {
  if (ordinal + kMostItems - base_ > kMaxOrdinal || spots_.full(kMostItems)) start_over(ordinal);
}

void TripleFinder::touch_by_touch(const Pattern& pattern, const std::uint64_t* words, Stamp first) {
  for (const PatternTouch& touch : pattern.touches) shadow_.slowly(touch, words, first);
}

void TripleFinder::one_by_one(const RecordShape& segment, const std::uint64_t* words, Stamp first) {
  Stamp now = first;
  const auto call = [&](const ShapeCall&) { now += kNextInRow; };
  walk_items(
      segment, Execution::of(0, 0, words), call,
      [&](std::size_t i) {
        const ShapeItem& item = segment.items[i];
        shadow_.access(Series::of(now, is_write(item.event.kind)), address_of(item, words),
                       size_of(item, words));
        now += kNextInRow;
      },
      call);
}

bool TripleFinder::follow(const Pattern& pattern, std::uint64_t rounds, Stamp first) {
  const Stamp round_length = Stamp{pattern.items} << kOrdinalShift;
  const std::uint64_t* const words = loop_.gathered();
  const std::uint64_t length = loop_.round_words();
  if (rounds == 0 || !shadow_.follows() || !pattern.by_lanes) return false;
  if (!lanes_.set(pattern.moving, loop_.items(), rounds)) return false;
  if (lanes_.meet(pattern.gathered, words, length, rounds)) return false;
  for (const Lane& lane : lanes_.all()) shadow_.follow(lane, rounds, first, round_length);
  if (!pattern.gathered.empty()) {
    Stamp** to = places_.data();
    for (std::uint64_t n = 0; n < rounds; ++n) {
      to = shadow_.find(pattern.gathered, words + n * length, to);
    }
    shadow_.ask_for_histories({places_.data(), to});
    to = places_.data();
    for (std::uint64_t n = 0; n < rounds; ++n) {
      to = shadow_.execute(pattern.gathered, words + n * length, first + n * round_length, to);
    }
  }
  loop_.skip(rounds);
  return true;
}

// Many rounds at a time, touch by touch, where that can be; else a few at a time, all of them at
// once where everything stays with this thread.
std::uint64_t TripleFinder::execute_loop(const Execution& loop, const RecordShape& shape,
                                         EventOrdinal ordinal, ContextId context) {
  constexpr std::uint64_t kRounds = 64;
  Pattern& pattern = patterns_.of(loop.shape, shape);
  const std::uint64_t all_rounds = loop.words[1];
  const bool ends_within_a_round = shape.always != 0 && shape.always != pattern.items;
  const bool fits = ordinal + (kMostRounds + 1) * pattern.items - base_ <= kMaxOrdinal &&
                    !spots_.full(pattern.items);
  const bool as_a_whole = shape.round_words == 0 && loop.items == Execution::kAll;
  if (as_a_whole && !ends_within_a_round && all_rounds - 1 < kMostRounds && fits) {
    const std::uint64_t rounds = shape.always != 0 ? all_rounds : all_rounds - 1;
    const Stamp first = make_stamp(ordinal - base_, row(pattern, loop.shape, shape, context));
    if (shadow_.stays_in_turn(pattern, shape, loop.words, rounds, first)) {
      return rounds * pattern.items;
    }
  }
  if (!loop_.begin(shape, loop)) return 0;
  if (pattern.simple && loop.items == Execution::kAll) {
    return execute_rounds(loop, shape, ordinal, context);
  }
  std::uint64_t done = 0;
  while (loop_.under_way()) {
    const std::uint64_t many = std::min(loop_.rounds(), kMostRounds);
    if (ordinal + done + (many + 1) * pattern.items - base_ > kMaxOrdinal ||
        spots_.full(pattern.items)) {
      start_over(ordinal + done);
    }
    const SpotId row = this->row(pattern, loop.shape, shape, context);
    const Stamp first = make_stamp(ordinal + done - base_, row);
    if (as_a_whole && follow(pattern, many, first)) {
      done += many * pattern.items;
      continue;
    }
    const std::uint64_t rounds = std::min(many, kRounds);
    if (rounds != 0 && as_a_whole && shadow_.stays(pattern, loop_.items(), rounds, first)) {
      loop_.skip(rounds);
      done += rounds * pattern.items;
      continue;
    }
    std::uint64_t number = done;
    const auto access = [&](std::size_t item, Address address) {
      if (!loop.has(item)) return;
      const Event& event = shape.items[item].event;
      const Stamp now = make_stamp(ordinal + number++ - base_, row + static_cast<SpotId>(item));
      shadow_.access(Series::of(now, is_write(event.kind)), address, event.size);
    };
    loop_.walk(access, rounds * pattern.items);
    done = number;
  }
  return done;
}

// A few rounds at a time: what all of them touch is found before it is touched. Only what is
// gathered takes that way where that can be told apart.
std::uint64_t TripleFinder::execute_rounds(const Execution& loop, const RecordShape& shape,
                                           EventOrdinal ordinal, ContextId context) {
  Pattern& pattern = patterns_.known(loop.shape);
  const std::size_t length = 1 + std::size_t{pattern.items};
  const std::uint64_t most = kPlaces / std::max<std::size_t>(pattern.touches.size(), 1);
  const std::uint64_t most_gathered = kPlaces / std::max<std::size_t>(pattern.gathered.size(), 1);
  round_words_.resize((most + 1) * length);
  std::uint64_t done = 0;
  while (loop_.under_way()) {
    make_room(ordinal + done);
    const SpotId row = this->row(pattern, loop.shape, shape, context);
    const std::uint64_t many = std::min(loop_.rounds(), most_gathered);
    if (follow(pattern, many, make_stamp(ordinal + done - base_, row))) {
      done += many * pattern.items;
      continue;
    }
    const std::uint64_t rounds = std::min(loop_.rounds(), most);
    const std::uint32_t rest = loop_.rest();
    std::uint64_t* words = round_words_.data();
    Stamp** to = places_.data();
    const auto access = [&](std::size_t item, Address address) {
      words[1 + item] = address - shape.items[item].event.address;
      if (item + 1 != pattern.items) return;
      to = shadow_.find(pattern.touches, words, to);
      words += length;
    };
    loop_.walk(access, rounds * pattern.items);
    shadow_.ask_for_histories({places_.data(), to});
    next_place_ = places_.data();
    words = round_words_.data();
    for (std::uint64_t round = 0; round < rounds; ++round, words += length) {
      const Stamp first = make_stamp(ordinal + done - base_, row);
      next_place_ = shadow_.execute(pattern.touches, words, first, next_place_);
      done += pattern.items;
    }
    for (std::uint32_t i = 0; i < rest && !loop_.under_way(); ++i) {
      const Event& event = shape.items[i].event;
      const Stamp now = make_stamp(ordinal + done++ - base_, row + static_cast<SpotId>(i));
      shadow_.access(Series::of(now, is_write(event.kind)), words[1 + i] + event.address,
                     event.size);
    }
  }
  return done;
}

void TripleFinder::on(const Event& event) {
  switch (event.kind) {
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
      retire(event.thread);
      break;
    case EventKind::kAlloc:
      shadow_.forget(event.address, event.value);
      blocks_[event.address] = event.value;
      break;
    case EventKind::kFree: {
      auto block = blocks_.find(event.address);
      const std::uint64_t known = block == blocks_.end() ? 0 : block->second;
      shadow_.forget(event.address, event.value != 0 ? event.value : known);
      if (block != blocks_.end()) blocks_.erase(block);
      break;
    }
    default:
      break;
  }
}

Actor TripleFinder::new_actor(ThreadId thread) {
  if (threads_.size() > Touch::kMaxActor) start_over(base_);
  const auto actor = static_cast<Actor>(threads_.size());
  threads_.push_back(thread);
  shadow_.begin(actor);
  if (thread >= actors_.size()) actors_.resize(thread + 1, kNone);
  actors_[thread] = actor;
  return actor;
}

void TripleFinder::retire(ThreadId thread) {
  if (thread >= actors_.size() || actors_[thread] == kNone) return;
  shadow_.end(actors_[thread]);
  actors_[thread] = kNone;
  thread_ = kNoThread;
}

// The numbers are exhausted (sixty-eight thousand million events, a million threads, or eight
// million spots): forget all and go on. A pair that spans this moment is not judged.
void TripleFinder::start_over(EventOrdinal ordinal) {
  const ThreadId thread = thread_;
  shadow_.forget_everything();
  spots_.clear();
  patterns_.forget_rows();
  actors_.clear();
  threads_.clear();
  base_ = ordinal;
  if (thread != kNoThread) begin_turn(thread, ordinal);
}

}  // namespace heddle::avio
