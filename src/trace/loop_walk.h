// The record of a plain loop into its accesses (abi/abi.h, "loops").
//
// One record may stand for billions of accesses, so they can be made in pieces: begin() takes what
// the record says, walk() makes as many as the caller has room for and goes on where it stopped.
// The words are copied at the start, because the target may write to the ring at any time.
//
// Nothing that the record says is trusted: more rounds than a loop can have, or a way that no
// memory is large enough for, are damage. A loop that never ended (its rounds are written as their
// complement) gives the accesses up to its fault, if the record knows it, and else none.
//
// Of a loop that gathers, rounds that its block has no room for are damage, too; but what says so
// may have changed in the meantime, so kMostGathered words behind any record can be read.
#pragma once

#include "abi/abi.h"
#include "trace/execution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heddle {

class LoopWalk {
 public:
  struct Moving {
    Address address;  // in the next round; of an item that is gathered, what is added to its words
    std::uint64_t step;  // has a sign
  };
  static std::uint64_t magnitude(std::uint64_t step) {
    return static_cast<std::int64_t>(step) < 0 ? 0 - step : step;
  }

  // What an item does from the first round on, as the record (its header and all words) says.
  static Moving moving(const RecordShape& loop, std::size_t item, const std::uint64_t* record) {
    const ShapeItem& of = loop.items[item];
    const LoopStep& step = loop.steps[item];
    if (step.gathered) return {.address = of.event.address, .step = 0};
    Moving word = moving(loop, LoopWord{of.base, step}, record);
    word.address += of.event.address;
    return word;
  }
  // The same of a word that is not gathered.
  static Moving moving(const RecordShape& loop, const LoopWord& word, const std::uint64_t* record) {
    const std::uint64_t base = word.base == 0 ? record[0] & ~std::uint64_t{1} : record[word.base];
    const std::uint64_t far = word.step.word != 0 ? record[word.step.word]
                                                  : static_cast<std::uint64_t>(word.step.distance);
    const std::uint64_t rounds_before = loop.round_words != 0 ? record[2] : 0;
    return {.address = base + rounds_before * far, .step = far};
  }
  static constexpr std::uint64_t kMostRounds = std::uint64_t{HEDDLE_LOOP_FEWEST} + HEDDLE_LOOP_MOST;
  static constexpr std::uint64_t kMostGathered = HEDDLE_BLOCK_WORDS;

  // Of a loop that ended, and no more than there can be, whatever the record says by now.
  static std::uint64_t rounds_of(const RecordShape& loop, const std::uint64_t* record) {
    const std::uint64_t most =
        loop.round_words != 0 ? kMostGathered / loop.round_words : kMostRounds;
    return std::min(record[1], most);
  }

  // The words that a loop with so many rounds has gathered; they begin behind the others.
  static std::uint64_t gathered(const RecordShape& loop, std::uint64_t rounds) {
    if (loop.round_words == 0 || rounds == 0) return 0;
    const std::uint64_t most = kMostGathered / loop.round_words;
    return (std::min(rounds, most) - 1) * loop.round_words + loop.last_words;
  }

  // `record` is the header and all words. `fault` is there for a record that is marked as paused:
  // its additional word. False: what it says cannot be.
  bool begin(const RecordShape& loop, const std::uint64_t* record,
             std::optional<std::uint64_t> fault = std::nullopt);

  // What an execution says: of all rounds, or of some.
  bool begin(const RecordShape& loop, const Execution& execution);

  // There is more to come.
  bool under_way() const { return under_way_; }

  // Whole rounds that are left, and how many items of one more round.
  std::uint64_t rounds() const { return whole_rounds_ - round_; }
  std::uint32_t rest() const { return rest_; }
  std::span<const Moving> items() const { return moving_; }
  std::uint64_t accesses() const { return rounds() * moving_.size() + rest_; }
  // What was gathered in the next round, and in those after it: so many words each.
  const std::uint64_t* gathered() const { return gathered_.data() + round_ * round_words_; }
  std::uint64_t round_words() const { return round_words_; }

  // Calls `access(std::size_t item, Address)` for about `most` accesses, in order; the last round
  // that is begun is finished.
  template <typename Access>
  void walk(Access access, std::uint64_t most = ~std::uint64_t{0}) {
    std::uint64_t made = 0;
    for (; round_ < whole_rounds_; ++round_, made += moving_.size()) {
      if (made >= most) return;
      for (std::size_t i = 0; i < moving_.size(); ++i) {
        access(i, address_of(i));
        moving_[i].address += moving_[i].step;
      }
    }
    for (std::uint32_t i = 0; i < rest_; ++i) access(i, address_of(i));
    under_way_ = false;
  }

  // Leaves out as many whole rounds, at most rounds().
  void skip(std::uint64_t rounds) {
    round_ += rounds;
    for (Moving& item : moving_) item.address += rounds * item.step;
  }

 private:
  static constexpr std::uint32_t kNotGathered = ~std::uint32_t{0};

  // In the next round.
  Address address_of(std::size_t item) const {
    const std::uint32_t word = round_words_ != 0 ? words_of_round_[item] : kNotGathered;
    if (word == kNotGathered) return moving_[item].address;
    return moving_[item].address + gathered_[round_ * round_words_ + word];
  }
  bool gather(const RecordShape& loop, const std::uint64_t* record, std::uint64_t rounds,
              bool ended);
  void cut_at(const RecordShape& loop, std::uint64_t fault);
  void cut_last_round(const RecordShape& loop, std::uint64_t fault);

  std::vector<Moving> moving_;
  std::uint64_t round_words_ = 0;              // 0: a loop that does not gather
  std::vector<std::uint32_t> words_of_round_;  // by item; or kNotGathered
  std::vector<std::uint64_t> gathered_;
  bool under_way_ = false;
  std::uint64_t round_ = 0;
  std::uint64_t whole_rounds_ = 0;
  std::uint32_t rest_ = 0;  // items of the round after the last whole one
};

// How many accesses an execution of a loop makes: it ended, and can be.
std::uint64_t accesses_of_loop(const RecordShape& loop, const Execution& execution);

}  // namespace heddle
