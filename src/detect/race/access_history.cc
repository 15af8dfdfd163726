#include "detect/race/access_history.h"

#include "base/check.h"

#include <algorithm>

namespace heddle::race {

// Cell 0 covers no access: its last byte comes before its first.
AccessHistory::AccessHistory() : cells_(1), splits_(1), further_(1), recent_(kRecent) {
  cells_[0].first = 1;
}

AccessHistory::Page& AccessHistory::make_page(Address number) {
  if (Page* const page = find_page(number)) return *page;
  std::unique_ptr<Page>& page = pages_[number];
  page = std::make_unique<Page>();
  return *page;
}

CellId AccessHistory::new_cell(std::uint32_t first, std::uint32_t last) {
  CellId id{};
  if (!free_cells_.empty()) {
    id = free_cells_.back();
    free_cells_.pop_back();
    cells_[id] = {};
  } else {
    HEDDLE_CHECK(cells_.size() < kSplit);
    id = static_cast<CellId>(cells_.size());
    cells_.emplace_back();
  }
  cells_[id].first = static_cast<std::uint8_t>(first);
  cells_[id].last = static_cast<std::uint8_t>(last);
  return id;
}

CellId AccessHistory::copy_cell(CellId from) {
  const CellId id = new_cell(0, 0);
  cells_[id] = cells_[from];
  if (cells_[from].further != 0) {
    const std::vector<FurtherAccess> list = further_[cells_[from].further];
    cells_[id].further = 0;
    further(cells_[id]) = list;
  }
  return id;
}

void AccessHistory::free_cell(CellId id) {
  drop_further(cells_[id]);
  cells_[id] = {};
  free_cells_.push_back(id);
}

// Makes `byte` the first of its cell.
void AccessHistory::split_at(SplitWord& word, std::uint32_t byte) {
  if (byte == 0 || byte > 7 || word[byte] == 0 || word[byte] != word[byte - 1]) return;
  const CellId left = word[byte];
  const CellId right = copy_cell(left);
  cells_[right].first = static_cast<std::uint8_t>(byte);
  cells_[left].last = static_cast<std::uint8_t>(byte - 1);
  for (std::uint32_t i = byte; i <= cells_[right].last; ++i) word[i] = right;
}

void AccessHistory::pieces_of(std::uint32_t& entry, std::uint32_t first, std::uint32_t last) {
  if (entry == 0) entry = new_cell(first, last);
  if (!(entry & kSplit)) {
    if (cells_[entry].first == first && cells_[entry].last == last) {
      pieces_[0] = entry;
      piece_count_ = 1;
      return;
    }
    std::uint32_t split{};
    if (!free_splits_.empty()) {
      split = free_splits_.back();
      free_splits_.pop_back();
      splits_[split] = {};
    } else {
      split = static_cast<std::uint32_t>(splits_.size());
      splits_.emplace_back();
    }
    for (std::uint32_t i = cells_[entry].first; i <= cells_[entry].last; ++i) {
      splits_[split][i] = entry;
    }
    entry = split | kSplit;
  }
  SplitWord& word = splits_[entry & ~kSplit];
  split_at(word, first);
  split_at(word, last + 1);
  piece_count_ = 0;
  for (std::uint32_t byte = first; byte <= last;) {
    if (word[byte] == 0) {
      std::uint32_t end = byte;
      while (end < last && word[end + 1] == 0) ++end;
      const CellId fresh = new_cell(byte, end);
      for (std::uint32_t i = byte; i <= end; ++i) word[i] = fresh;
    }
    pieces_[piece_count_++] = word[byte];
    byte = cells_[word[byte]].last + 1u;
  }
}

void AccessHistory::clear(Address address, std::uint64_t size) {
  for_touched_words(address, size, [&](std::uint32_t& entry, Address at, std::uint64_t bytes) {
    const auto first = static_cast<std::uint32_t>(at & 7);
    const auto last = static_cast<std::uint32_t>(first + bytes - 1);
    pieces_of(entry, first, last);
    const bool whole = !(entry & kSplit);
    for (std::size_t i = 0; i < piece_count_; ++i) free_cell(pieces_[i]);
    if (whole) {
      entry = 0;
      return;
    }
    SplitWord& word = splits_[entry & ~kSplit];
    for (std::uint32_t i = first; i <= last; ++i) word[i] = 0;
    if (std::all_of(word.begin(), word.end(), [](CellId id) { return id == 0; })) {
      free_splits_.push_back(entry & ~kSplit);
      entry = 0;
    }
  });
}

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

}  // namespace heddle::race
