#include "detect/avio/history.h"

#include <algorithm>

namespace heddle::avio {

Touch* Lanes::make(Directory& lanes, HistoryId id, Arena& arena) {
  if (id / kLane >= lanes.size()) {
    lanes.resize(std::max<std::size_t>(id / kLane + std::size_t{1}, lanes.size() * 2));
  }
  return lanes[id / kLane] = static_cast<Touch*>(arena.take(kLane * sizeof(Touch)));
}

void Lanes::end(Arena& arena) {
  for (Directory* lanes : {&last_, &readers_}) {
    for (Touch* lane : *lanes) {
      if (lane != nullptr) arena.give_back(lane, kLane * sizeof(Touch));
    }
    *lanes = Directory();
  }
  ended_ = true;
}

void History::start(const Touch& owner, HistoryId id, Lanes& lanes, Arena& arena) {
  lanes.last(id, arena) = as_slot(owner);
  if (owner.writes()) {
    write_ = owner;
    unseen_ = true;
  }
}

void History::copy(const History& other, HistoryId other_id, HistoryId id, std::vector<Lanes>& all,
                   Arena& arena) {
  write_ = other.write_;
  unseen_ = other.unseen_;
  for (Lanes& lanes : all) {
    if (lanes.ended()) continue;
    const Touch* const slot = lanes.existing(other_id);
    if (slot == nullptr || !other.is_current(*slot)) continue;
    const Touch known = *slot;
    lanes.last(id, arena) = as_slot(known);
    if ((known.bits & Lanes::kReadSince) != 0) {
      const Touch reader = lanes.reader(other_id, arena);
      lanes.reader(id, arena) = reader;
    }
  }
}

void History::catch_up(const Touch& last, const Touch& write, HistoryId id, Lanes& mine,
                       Arena& arena) {
  if (!mine.ended()) mine.last(id, arena) = as_slot(last);
  if (write) write_ = write;
  unseen_ = last.writes();
}

bool History::drop() {
  write_ = Touch();
  unseen_ = false;
  return ++used_up_ < Touch::kMaxActor;
}

void History::remember_reader(const Touch& reader, HistoryId id, Lanes& of_writer, Arena& arena) {
  if (of_writer.ended()) return;
  of_writer.last(id, arena).bits |= Lanes::kReadSince;
  of_writer.reader(id, arena) = reader;
}

}  // namespace heddle::avio
