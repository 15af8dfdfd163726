#include "detect/avio/history.h"

#include <algorithm>

namespace heddle::avio {

void History::start(const Touch& owner) {
  few_[owner.actor() & (kFew - 1)] = owner;
  used_ = 1;
  if (owner.writes()) {
    write_ = owner;
    unseen_ = true;
  }
}

void History::copy(const History& other, Arena& arena) {
  *this = other;
  const auto own = [&](Touch*& touches) {
    if (touches == nullptr) return;
    auto* const block_of_ours = static_cast<Touch*>(arena.take(block()));
    std::copy_n(touches, capacity(), block_of_ours);
    touches = block_of_ours;
  };
  own(more_);
  own(readers_);
}

void History::drop(Arena& arena) {
  if (more_ != nullptr) arena.give_back(more_, block());
  if (readers_ != nullptr) arena.give_back(readers_, block());
  *this = History();
}

Touch History::last(Actor actor) const {
  const std::uint32_t at = find(actor);
  if (at == kNone) return {};
  Touch out = slots()[at];
  out.bits &= ~kReadSince;
  return out;
}

void History::remember_reader(const Touch& reader, Arena& arena) {
  const std::uint32_t writer = find(write_.actor());
  if (writer == kNone) return;  // it ended and was thrown out
  if (readers_ == nullptr) readers_ = static_cast<Touch*>(arena.take(block()));
  readers_[writer] = reader;
  slots()[writer].bits |= kReadSince;
}

// The slot stays empty until the caller fills it.
std::uint32_t History::insert(Actor actor, const std::vector<bool>& ended, Arena& arena) {
  // Few slots may fill up (dense actors rarely collide); more are kept three quarters full.
  const std::uint32_t limit = more_ == nullptr ? kFew : capacity() - capacity() / 4;
  if (used_ >= limit) rebuild(ended, arena);
  ++used_;
  const std::uint32_t wrap = capacity() - 1;
  std::uint32_t at = actor & wrap;
  while (slots()[at]) at = (at + 1) & wrap;
  return at;
}

// Drops ended threads; doubles the room only if more than half of it is still needed, so that the
// cost of a rebuild is shared by as many insertions.
void History::rebuild(const std::vector<bool>& ended, Arena& arena) {
  struct Live {
    Touch last, reader;
  };
  std::vector<Live> live;
  for (std::uint32_t i = 0; i < capacity(); ++i) {
    const Touch& slot = slots()[i];
    if (slot && !ended[slot.actor()]) {
      live.push_back({slot, readers_ != nullptr ? readers_[i] : Touch()});
    }
  }
  const bool had_readers = readers_ != nullptr;
  if (more_ != nullptr) arena.give_back(more_, block());
  if (had_readers) arena.give_back(readers_, block());
  if (live.size() * 2 > capacity()) ++doubled_;
  if (doubled_ == 0) {
    few_.fill(Touch());
  } else {
    more_ = static_cast<Touch*>(arena.take(block()));
  }
  if (had_readers) readers_ = static_cast<Touch*>(arena.take(block()));
  used_ = static_cast<std::uint32_t>(live.size());
  const std::uint32_t wrap = capacity() - 1;
  for (const Live& each : live) {
    std::uint32_t at = each.last.actor() & wrap;
    while (slots()[at]) at = (at + 1) & wrap;
    slots()[at] = each.last;
    if (readers_ != nullptr) readers_[at] = each.reader;
  }
}

}  // namespace heddle::avio
