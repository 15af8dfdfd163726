#include "detect/race/access_history.h"

namespace heddle::race {

std::vector<FurtherAccess>& AccessHistory::further(Cell& cell) {
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
  std::vector<FurtherAccess> list = further_[cell.further];
  cell.further = 0;
  further(cell) = std::move(list);
}

}  // namespace heddle::race
