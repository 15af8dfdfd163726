// Where the rounds of a loop come from whose rounds are executions of one segment (flow/rounds.h).
#pragma once

#include "flow/program.h"
#include "trace/execution.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace heddle {

// Rounds that the program wrote one by one.
class ExecutedRounds {
 public:
  static constexpr std::uint64_t kLongest = 64;  // stretch of rounds that is looked for

  ExecutedRounds(const Execution* next, const Execution* end) : next_(next), end_(end) {}

  const Execution* next() const { return next_; }
  const Execution* end() const { return end_; }
  bool goes_on() const {
    return next_ != end_ && next_->shape_and_thread() == next_[-1].shape_and_thread();
  }
  const std::uint64_t* words() const { return next_->words; }
  void move_on(std::uint64_t rounds) { next_ += rounds; }

  // How far a word moves from the last round to the next one; and how many rounds, the next one
  // included, come in which these words do the same.
  std::uint64_t step(std::uint32_t word) const {
    return next_->words[word] - next_[-1].words[word];
  }
  template <std::size_t kMost>
  std::uint64_t count_even(std::span<const LiveItem> items) const {
    struct Word {
      std::uint32_t base;
      std::uint64_t step;
      std::uint64_t expected;
    };
    std::array<Word, kMost> words;
    std::size_t count = 0;
    for (const LiveItem& item : items) {
      const auto last = words.begin() + count;
      if (std::none_of(words.begin(), last,
                       [&](const Word& word) { return word.base == item.base; }))
        words[count++] = {item.base, step(item.base), next_->words[item.base]};
    }
    const auto is_even = [&](const Execution& round) {
      if (round.shape_and_thread() != next_->shape_and_thread()) return false;
      for (std::size_t i = 0; i < count; ++i) {
        if (round.words[words[i].base] != words[i].expected) return false;
        words[i].expected += words[i].step;
      }
      return true;
    };
    std::uint64_t even = 0;
    while (next_ + even != end_ && even < kLongest && is_even(next_[even])) ++even;
    return even;
  }

 private:
  const Execution* next_;
  const Execution* end_;
};

// Rounds that follow from a loop's record.
class RecordedRounds {
 public:
  static constexpr std::size_t kMostWords = 16;

  static bool fit(const RecordShape& loop) { return loop.moving.size() <= kMostWords; }

  // `count` rounds, from the one with number `first` on.
  RecordedRounds(const RecordShape& loop, const std::uint64_t* record, std::uint64_t first,
                 std::uint64_t count)
      : loop_(loop), left_(count), gathers_(loop.round_words != 0), round_(first), record_(record) {
    for (std::size_t i = 0; i < loop.moving.size(); ++i) {
      steps_[i] = 0;
      if (loop.moving[i].step.gathered) continue;
      const LoopWalk::Moving moving = LoopWalk::moving(loop, loop.moving[i], record);
      words_[i] = moving.address + first * moving.step;
      steps_[i] = moving.step;
    }
    if (gathers_ && left_ != 0) gather();
  }

  bool goes_on() const { return left_ != 0; }
  const std::uint64_t* words() const { return words_.data(); }
  void move_on(std::uint64_t rounds) {
    left_ -= rounds;
    round_ += rounds;
    for (std::size_t i = 0; i < loop_.moving.size(); ++i) words_[i] += rounds * steps_[i];
    if (gathers_ && left_ != 0) gather();
  }
  // In the round that comes so many after the next one, if there is one.
  bool reaches(std::uint64_t ahead) const { return ahead < left_; }
  std::uint64_t word(std::uint32_t number, std::uint64_t ahead) const {
    return loop_.moving[number].step.gathered ? gathered(number, round_ + ahead)
                                              : words_[number] + ahead * steps_[number];
  }

  std::uint64_t step(std::uint32_t word) const { return steps_[word]; }
  template <std::size_t kMost>
  std::uint64_t count_even(std::span<const LiveItem> /*items*/) const {
    return gathers_ ? 0 : left_;
  }

 private:
  std::uint64_t gathered(std::size_t word, std::uint64_t round) const {
    return record_[loop_.moving[word].base + round * loop_.round_words];
  }
  void gather() {
    for (std::size_t i = 0; i < loop_.moving.size(); ++i) {
      if (loop_.moving[i].step.gathered) words_[i] = gathered(i, round_);
    }
  }

  const RecordShape& loop_;
  std::uint64_t left_;
  bool gathers_;
  std::uint64_t round_;
  const std::uint64_t* record_;
  std::array<std::uint64_t, kMostWords> words_;  // as many as move
  std::array<std::uint64_t, kMostWords> steps_;  // the same
};

}  // namespace heddle
