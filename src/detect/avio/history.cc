#include "detect/avio/history.h"

#include <algorithm>

namespace heddle::avio {

History::History(const Touch& owner) : capacity_(kFirstCapacity), slots_(new Slot[kFirstCapacity]) {
  Slot& slot = slots_[owner.actor() & (capacity_ - 1)];
  slot.last = owner;
  used_ = 1;
  if (owner.writes()) {
    write_ = owner;
    unseen_ = true;
  }
}

History::History(const History& other)
    : write_(other.write_),
      unseen_(other.unseen_),
      capacity_(other.capacity_),
      used_(other.used_),
      slots_(new Slot[other.capacity_]) {
  std::copy_n(other.slots_.get(), capacity_, slots_.get());
}

History& History::operator=(const History& other) {
  if (this != &other) *this = History(other);
  return *this;
}

bool History::on(const Touch& touch, const std::vector<bool>& ended, Split* out) {
  const Actor actor = touch.actor();
  Slot* slot = find(actor);
  bool found = false;
  if (slot != nullptr) {
    const Touch& p = slot->last;
    if (p.writes() && !touch.reads()) {
      if (slot->first_reader) {
        *out = {SplitCase::kWriteReadWrite, p, slot->first_reader};
        found = true;
      }
    } else if (write_.ordinal() > p.ordinal()) {
      *out = {p.writes()      ? SplitCase::kWriteWriteRead
              : touch.reads() ? SplitCase::kReadWriteRead
                              : SplitCase::kReadWriteWrite,
              p, write_};
      found = true;
    }
  } else {
    slot = &insert(actor, ended);
  }
  if (unseen_) {
    if (touch.reads() && write_.actor() != actor) {
      if (Slot* writer = find(write_.actor())) writer->first_reader = touch;
    }
    unseen_ = false;
  }
  if (touch.writes()) {
    write_ = touch;
    unseen_ = true;
  }
  slot->last = touch;
  slot->first_reader = Touch();
  return found;
}

History::Slot* History::find(Actor actor) {
  const std::uint32_t wrap = capacity_ - 1;
  std::uint32_t at = actor & wrap;
  for (std::uint32_t probes = 0; probes < capacity_; ++probes, at = (at + 1) & wrap) {
    Slot& slot = slots_[at];
    if (!slot.last) return nullptr;
    if (slot.last.actor() == actor) return &slot;
  }
  return nullptr;
}

History::Slot& History::insert(Actor actor, const std::vector<bool>& ended) {
  // Four slots may fill up (dense actors rarely collide); more are kept three quarters full.
  const std::uint32_t limit = capacity_ <= kFirstCapacity ? capacity_ : capacity_ - capacity_ / 4;
  if (used_ >= limit) rebuild(ended);
  ++used_;
  const std::uint32_t wrap = capacity_ - 1;
  std::uint32_t at = actor & wrap;
  while (slots_[at].last) at = (at + 1) & wrap;
  return slots_[at];
}

// Drops ended threads; doubles the room only if more than half of it is still needed, so that the
// cost of a rebuild is shared by as many insertions.
void History::rebuild(const std::vector<bool>& ended) {
  std::vector<Slot> live;
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    if (slots_[i].last && !ended[slots_[i].last.actor()]) live.push_back(slots_[i]);
  }
  if (live.size() * 2 > capacity_) capacity_ *= 2;
  slots_ = std::make_unique<Slot[]>(capacity_);
  used_ = static_cast<std::uint32_t>(live.size());
  const std::uint32_t wrap = capacity_ - 1;
  for (const Slot& slot : live) {
    std::uint32_t at = slot.last.actor() & wrap;
    while (slots_[at].last) at = (at + 1) & wrap;
    slots_[at] = slot;
  }
}

}  // namespace heddle::avio
