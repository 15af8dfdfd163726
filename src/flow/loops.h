// FlowMachine's way with records of whole loops (abi/abi.h, "loops").
//
// A record stands for all rounds of a loop. Mostly a round is one segment: then nothing is made of
// the record but the words of the round that is executed, and where the rounds are steady
// (flow/rounds.h) hardly that. Rounds of several segments are made again as executions, some at a
// time.
#pragma once

#include "flow/machine.h"
#include "trace/loop_walk.h"

#include <algorithm>

namespace heddle {

template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::expect_rounds(
    ThreadId /*id*/, const LiveSegment& live, const RecordedRounds& rounds) {
  if constexpr (kGlances) {
    if (live.scattered && rounds.reaches(kAhead)) {
      for (const LiveItem& item : live.all_items()) {
        if (item.scattered) client_.expect(item.offset + rounds.word(item.base, kAhead));
      }
    }
    if (live.jumps && rounds.reaches(kSoon)) {
      for (const LiveItem& item : live.all_items()) {
        if (item.jumps) client_.expect_beyond(item.offset + rounds.word(item.base, kSoon));
      }
    }
  }
}

template <typename Client>
template <typename After>
[[gnu::noinline]] EventOrdinal FlowMachine<Client>::loop(const RecordShape& shape,
                                                         const Execution& record,
                                                         std::span<const RecordShape* const> shapes,
                                                         EventOrdinal ordinal, After after) {
  // All rounds are whole but the last, if it ends at the loop's test.
  const std::uint64_t all = LoopWalk::rounds_of(shape, record.words);
  const bool ends_early = all != 0 && shape.always != shape.items.size();
  const std::uint64_t whole = ends_early ? all - 1 : all;
  const ShapeId only = shape.parts.size() == 1 ? shape.parts[0].shape : 0;
  const bool is_simple = only != 0 && RecordedRounds::fit(shape);
  for (std::uint64_t first = 0; first < whole;) {
    const std::uint64_t count = std::min(whole - first, kRoundsAtOnce);
    ordinal = is_simple && can_repeat(only, shapes)
                  ? rounds_of(shape, record, first, count, ordinal, after)
                  : made_again(shape, record, first, count, shapes, ordinal, after);
    first += count;
    client_.rest();
  }
  if (!ends_early || shape.always == 0) return ordinal;
  const auto is_last = [&](const LoopPart& part) { return part.end <= shape.always; };
  const auto parts = std::count_if(shape.parts.begin(), shape.parts.end(), is_last);
  return made_again(shape, record, whole, 1, shapes, ordinal, after,
                    static_cast<std::size_t>(parts));
}

template <typename Client>
bool FlowMachine<Client>::can_repeat(ShapeId id, std::span<const RecordShape* const> shapes) {
  LiveSegment& live = programs_.live(shapes)[id];
  if (!live.known) compile(id, *shapes[id]);
  return live.fits && live.repeats;
}

// Rounds of one segment.
template <typename Client>
template <typename After>
EventOrdinal FlowMachine<Client>::rounds_of(const RecordShape& shape, const Execution& record,
                                            std::uint64_t first, std::uint64_t count,
                                            EventOrdinal ordinal, After after) {
  const ThreadId id = record.who;
  LiveSegment& live = programs_.live()[shape.parts[0].shape];
  Thread& thread = thread_of(id);
  client_.turn(id);
  RecordedRounds rounds(shape, record.words, first, count);
  if (shape.round_words != 0) sample(live, id, rounds);
  do {
    execute(id, thread, live, rounds.words(), ordinal);
    ordinal += live.events();
    rounds.move_on(1);
    after();
    if (rounds.goes_on() && thread.running != nullptr)
      repeat(id, thread, live, rounds, ordinal, after);
  } while (rounds.goes_on());
  return ordinal;
}

template <typename Client>
void FlowMachine<Client>::sample(LiveSegment& live, ThreadId id, const RecordedRounds& rounds) {
  for (const std::uint64_t ahead : {std::uint64_t{0}, std::uint64_t{kSampled}}) {
    if (!rounds.reaches(ahead)) return;
    sample(live, id, [&](const LiveItem& item) { return rounds.word(item.base, ahead); });
  }
}

// Rounds as executions of their segments, or of the first of them.
template <typename Client>
template <typename After>
EventOrdinal FlowMachine<Client>::made_again(const RecordShape& shape, const Execution& record,
                                             std::uint64_t first, std::uint64_t count,
                                             std::span<const RecordShape* const> shapes,
                                             EventOrdinal ordinal, After after, std::size_t parts) {
  const std::size_t width = shape.moving.size();
  const std::span<const LoopPart> made =
      std::span(shape.parts).first(std::min(parts, shape.parts.size()));
  const std::uint64_t end = first + count;
  while (first < end) {
    const std::uint64_t some = std::min(end - first, kMadeAtOnce);
    loop_words_.resize(some * width);
    loop_executions_.clear();
    for (std::size_t i = 0; i < width; ++i) {
      const LoopWord& word = shape.moving[i];
      const LoopWalk::Moving moving =
          word.step.gathered ? LoopWalk::Moving{} : LoopWalk::moving(shape, word, record.words);
      for (std::uint64_t round = 0; round < some; ++round) {
        loop_words_[round * width + i] =
            word.step.gathered ? record.words[word.base + (first + round) * shape.round_words]
                               : moving.address + (first + round) * moving.step;
      }
    }
    for (std::uint64_t round = 0; round < some; ++round) {
      for (const LoopPart& part : made) {
        loop_executions_.push_back(
            Execution::of(part.shape, record.who, loop_words_.data() + round * width));
      }
    }
    sample(loop_executions_, shapes);
    ordinal = run(loop_executions_, shapes, ordinal, after).next;
    first += some;
  }
  return ordinal;
}

}  // namespace heddle
