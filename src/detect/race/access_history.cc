#include "detect/race/access_history.h"

namespace heddle::race {

void FurtherAccesses::add(const FurtherAccess& access) {
  all_.push_back(access);
  if (access.access_class == AccessClass::kRead) {
    const Slot slot = access.access.slot;
    if (slot >= read_of_slot_.size()) read_of_slot_.resize(slot + 1);
    read_of_slot_[slot] = static_cast<std::uint32_t>(all_.size());
  } else if (access.access_class != AccessClass::kAtomicRead) {
    ++writes_;
  }
}

void FurtherAccesses::clear() {
  all_.clear();
  read_of_slot_.clear();
  writes_ = 0;
}

FurtherAccesses& AccessHistory::further(Cell& cell) {
  if (cell.further == 0) {
    if (!free_further_.empty()) {
      cell.further = free_further_.back();
      free_further_.pop_back();
    } else {
      cell.further = static_cast<std::uint32_t>(further_.size());
      further_.emplace_back();
    }
  }
  return further_[cell.further];
}

void AccessHistory::drop_further(Cell& cell) {
  if (cell.further == 0) return;
  further_[cell.further].clear();
  free_further_.push_back(cell.further);
  cell.further = 0;
}

void AccessHistory::copied(Cell& cell) {
  if (cell.further == 0) return;
  FurtherAccesses list = further_[cell.further];
  cell.further = 0;
  further(cell) = std::move(list);
}

}  // namespace heddle::race
