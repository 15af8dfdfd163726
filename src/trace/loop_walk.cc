#include "trace/loop_walk.h"

#include "abi/abi.h"

namespace heddle {
namespace {

constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 47;

std::uint64_t magnitude(std::uint64_t step) {
  return static_cast<std::int64_t>(step) < 0 ? 0 - step : step;
}

// The first round in which [address, address + size), moved by `step` every round, touches
// [page, page + HEDDLE_FAULT_PAGE). Addresses are below 2^48 here. ~0: never.
std::uint64_t first_touch(Address address, std::uint64_t size, std::uint64_t step, Address page) {
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  const Address page_end = page + HEDDLE_FAULT_PAGE;
  const auto touches = [&](Address at) { return at < page_end && at + size > page; };
  if (touches(address)) return 0;
  const std::uint64_t far = magnitude(step);
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

bool LoopWalk::begin(const RecordShape& loop, const std::uint64_t* record,
                     std::optional<std::uint64_t> fault) {
  const std::uint64_t word = record[1];
  const bool ended = static_cast<std::int64_t>(word) >= 0;
  const std::uint64_t rounds = ended ? word : ~word;
  bool believable = rounds <= kMostRounds;
  moving_.resize(loop.items.size());
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    moving_[i] = moving(loop, i, record);
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
  if (!ended) cut_at(loop, fault.value_or(0));
  if (rest_ == moving_.size()) {
    ++whole_rounds_;
    rest_ = 0;
  }
  return true;
}

}  // namespace heddle
