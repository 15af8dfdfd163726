#include "detect/avio/history.h"

#include <algorithm>

namespace heddle::avio {

History::History(const Touch& owner) {
  few_[owner.actor() & (kFew - 1)] = owner;
  used_ = 1;
  if (owner.writes()) {
    write_ = owner;
    unseen_ = true;
  }
}

History::History(const History& other)
    : write_(other.write_),
      capacity_(other.capacity_),
      used_(other.used_),
      unseen_(other.unseen_),
      few_(other.few_) {
  const auto copy = [&](const std::unique_ptr<Touch[]>& from, std::unique_ptr<Touch[]>& to) {
    if (from == nullptr) return;
    to = std::make_unique<Touch[]>(capacity_);
    std::copy_n(from.get(), capacity_, to.get());
  };
  copy(other.more_, more_);
  copy(other.readers_, readers_);
}

History& History::operator=(const History& other) {
  if (this != &other) *this = History(other);
  return *this;
}

bool History::on(const Touch& touch, const std::vector<bool>& ended, Split* out) {
  const Actor actor = touch.actor();
  std::uint32_t at = find(actor);
  bool found = false;
  if (at != kNone) {
    Touch p = slots()[at];
    if (p.writes() && !touch.reads()) {
      if ((p.bits & kReadSince) != 0) {
        p.bits &= ~kReadSince;
        *out = {SplitCase::kWriteReadWrite, p, readers_[at]};
        found = true;
      }
    } else if (write_.ordinal() > p.ordinal()) {
      p.bits &= ~kReadSince;
      *out = {p.writes()      ? SplitCase::kWriteWriteRead
              : touch.reads() ? SplitCase::kReadWriteRead
                              : SplitCase::kReadWriteWrite,
              p, write_};
      found = true;
    }
  } else {
    at = insert(actor, ended);
  }
  if (unseen_) {
    if (touch.reads() && write_.actor() != actor) remember_reader(touch);
    unseen_ = false;
  }
  if (touch.writes()) {
    write_ = touch;
    unseen_ = true;
  }
  slots()[at] = touch;
  return found;
}

Touch History::last(Actor actor) const {
  const std::uint32_t at = find(actor);
  if (at == kNone) return {};
  Touch out = slots()[at];
  out.bits &= ~kReadSince;
  return out;
}

void History::remember_reader(const Touch& reader) {
  const std::uint32_t writer = find(write_.actor());
  if (writer == kNone) return;  // it ended and was thrown out
  if (readers_ == nullptr) readers_ = std::make_unique<Touch[]>(capacity_);
  readers_[writer] = reader;
  slots()[writer].bits |= kReadSince;
}

std::uint32_t History::find(Actor actor) const {
  const Touch* all = slots();
  const std::uint32_t wrap = capacity_ - 1;
  std::uint32_t at = actor & wrap;
  for (std::uint32_t probes = 0; probes < capacity_; ++probes, at = (at + 1) & wrap) {
    if (!all[at]) return kNone;
    if (all[at].actor() == actor) return at;
  }
  return kNone;
}

// The slot stays empty until the caller fills it.
std::uint32_t History::insert(Actor actor, const std::vector<bool>& ended) {
  // Few slots may fill up (dense actors rarely collide); more are kept three quarters full.
  const std::uint32_t limit = capacity_ == kFew ? kFew : capacity_ - capacity_ / 4;
  if (used_ >= limit) rebuild(ended);
  ++used_;
  const std::uint32_t wrap = capacity_ - 1;
  std::uint32_t at = actor & wrap;
  while (slots()[at]) at = (at + 1) & wrap;
  return at;
}

// Drops ended threads; doubles the room only if more than half of it is still needed, so that the
// cost of a rebuild is shared by as many insertions.
void History::rebuild(const std::vector<bool>& ended) {
  struct Live {
    Touch last, reader;
  };
  std::vector<Live> live;
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    const Touch& slot = slots()[i];
    if (slot && !ended[slot.actor()]) live.push_back({slot, readers_ ? readers_[i] : Touch()});
  }
  if (live.size() * 2 > capacity_) capacity_ *= 2;
  if (capacity_ == kFew) {
    few_.fill(Touch());
  } else {
    more_ = std::make_unique<Touch[]>(capacity_);
  }
  if (readers_ != nullptr) readers_ = std::make_unique<Touch[]>(capacity_);
  used_ = static_cast<std::uint32_t>(live.size());
  const std::uint32_t wrap = capacity_ - 1;
  for (const Live& each : live) {
    std::uint32_t at = each.last.actor() & wrap;
    while (slots()[at]) at = (at + 1) & wrap;
    slots()[at] = each.last;
    if (readers_ != nullptr) readers_[at] = each.reader;
  }
}

std::size_t History::memory() const {
  return sizeof(Touch) * ((more_ ? capacity_ : 0) + (readers_ ? capacity_ : 0));
}

}  // namespace heddle::avio
