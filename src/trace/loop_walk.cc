#include "trace/loop_walk.h"

#include "abi/abi.h"

namespace heddle {
namespace {

constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 47;

// The first round in which [address, address + size), moved by `step` every round, touches
// [page, page + HEDDLE_FAULT_PAGE). Addresses are below 2^48 here. ~0: never.
std::uint64_t first_touch(Address address, std::uint64_t size, std::uint64_t step, Address page) {
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  const Address page_end = page + HEDDLE_FAULT_PAGE;
  const auto touches = [&](Address at) { return at < page_end && at + size > page; };
  if (touches(address)) return 0;
  const std::uint64_t far = LoopWalk::magnitude(step);
  const bool upwards = static_cast<std::int64_t>(step) > 0;
  if (far == 0 || upwards != (address < page)) return kNever;
  const std::uint64_t way = upwards ? page - (address + size) + 1 : address - page_end + 1;
  const std::uint64_t round = (way + far - 1) / far;
  return touches(address + round * step) ? round : kNever;
}

}  // namespace

// All accesses up to the first one of the page.
void LoopWalk::cut_at(const RecordShape& loop, std::uint64_t fault) {
  const Address page = fault & ~std::uint64_t{HEDDLE_FAULT_PAGE - 1};
  const bool only_writes = (fault & HEDDLE_FAULT_WRITE) != 0;
  const std::uint64_t rounds = whole_rounds_;
  const std::uint32_t last = rest_;
  whole_rounds_ = 0;
  rest_ = 0;
  if ((fault & HEDDLE_FAULT_KNOWN) == 0 || page >= kAddressSpace) return;
  std::uint64_t best = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < moving_.size(); ++i) {
    const Event& event = loop.items[i].event;
    if (only_writes && event.kind != EventKind::kWrite) continue;
    const std::uint64_t round = first_touch(moving_[i].address, event.size, moving_[i].step, page);
    if (round >= rounds + (i < last ? 1 : 0) || round >= best) continue;
    best = round;
    whole_rounds_ = round;
    rest_ = i + 1;
  }
}

// Copies the words that were gathered. False: there cannot be as many.
bool LoopWalk::gather(const RecordShape& loop, const std::uint64_t* record, std::uint64_t rounds,
                      bool ended) {
  round_words_ = loop.round_words;
  if (round_words_ == 0) return true;
  if (rounds > kMostGathered / round_words_) return false;
  const std::uint64_t* const words = record + 1 + loop.words;
  gathered_.assign(words, words + (ended ? gathered(loop, rounds) : rounds * round_words_));
  gathered_.resize(rounds * round_words_);
  words_of_round_.resize(loop.items.size());
  for (std::size_t i = 0; i < loop.items.size(); ++i) {
    words_of_round_[i] =
        loop.steps[i].gathered ? loop.items[i].base - 1u - loop.words : kNotGathered;
  }
  return true;
}

// Of a loop that gathers: it faulted in the last round that it began.
void LoopWalk::cut_last_round(const RecordShape& loop, std::uint64_t fault) {
  const Address page = fault & ~std::uint64_t{HEDDLE_FAULT_PAGE - 1};
  const bool only_writes = (fault & HEDDLE_FAULT_WRITE) != 0;
  rest_ = 0;
  if ((fault & HEDDLE_FAULT_KNOWN) == 0) return;
  round_ = whole_rounds_;
  for (std::uint32_t i = 0; i < moving_.size() && rest_ == 0; ++i) {
    const Event& event = loop.items[i].event;
    if (only_writes && event.kind != EventKind::kWrite) continue;
    const Address at = address_of(i) + whole_rounds_ * moving_[i].step;
    if (at < page + HEDDLE_FAULT_PAGE && at + event.size > page) rest_ = i + 1;
  }
  round_ = 0;
}

bool LoopWalk::begin(const RecordShape& loop, const std::uint64_t* record,
                     std::optional<std::uint64_t> fault) {
  const std::uint64_t word = record[1];
  const bool ended = static_cast<std::int64_t>(word) >= 0;
  const std::uint64_t rounds = ended ? word : ~word;
  bool believable = gather(loop, record, rounds, ended) && rounds <= kMostRounds;
  moving_.resize(loop.items.size());
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    moving_[i] = moving(loop, i, record);
    if (loop.steps[i].gathered) continue;
    // It stays within the address space while it moves.
    std::uint64_t way;
    believable &= moving_[i].address < kAddressSpace &&
                  !__builtin_mul_overflow(rounds, magnitude(moving_[i].step), &way) &&
                  way <= kAddressSpace;
  }
  under_way_ = false;
  round_ = whole_rounds_ = 0;
  rest_ = 0;
  if (rounds == 0) return true;    // was not even begun when the target died
  if (!believable) return !ended;  // a wild pointer leads to a fault
  under_way_ = true;
  // The last round ends where the loop's test does.
  whole_rounds_ = rounds - 1;
  rest_ = loop.always;
  if (!ended && round_words_ != 0 && fault.has_value()) {
    cut_last_round(loop, *fault);
  } else if (!ended) {
    cut_at(loop, fault.value_or(0));
  }
  if (rest_ == moving_.size()) {
    ++whole_rounds_;
    rest_ = 0;
  }
  return true;
}

bool LoopWalk::begin(const RecordShape& loop, const Execution& execution) {
  if (!begin(loop, execution.words)) return false;
  if (execution.round_count() == 0) return true;
  const std::uint64_t end = execution.first_round() + execution.round_count();
  if (end <= whole_rounds_) {
    whole_rounds_ = end;
    rest_ = 0;
  }
  under_way_ = under_way_ && execution.first_round() <= whole_rounds_;
  if (under_way_) skip(execution.first_round());
  return true;
}

std::uint64_t accesses_of_loop(const RecordShape& loop, const Execution& execution) {
  const std::uint64_t rounds = execution.words[1];
  const std::uint64_t count = execution.round_count() != 0 ? execution.round_count() : rounds;
  if (execution.items == Execution::kAll && count == rounds) {
    return (rounds - 1) * loop.items.size() + loop.always;
  }
  std::uint64_t in_a_round = 0;
  std::uint64_t in_the_last = 0;
  for (std::size_t i = 0; i < loop.items.size(); ++i) {
    if (!execution.has(i)) continue;
    ++in_a_round;
    in_the_last += i < loop.always ? 1 : 0;
  }
  const bool to_the_end = execution.first_round() + count == rounds;
  return (count - 1) * in_a_round + (to_the_end ? in_the_last : in_a_round);
}

}  // namespace heddle
