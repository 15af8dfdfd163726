// A map from bytes of memory to cells, for detectors that keep a history per byte.
//
// Neighbouring bytes are mostly accessed together, so a cell stands for a run of bytes of one
// aligned 8-byte word that have the same history; an access to a part of a run splits it, both
// halves going on with a copy. The result is that of one history per byte.
//
// Layout: pages of 4,096 bytes by hash, in a page one number per word: 0 = untouched, a cell, or
// (top bit) the eight cells of a word that was split.
//
// `Cell` is copyable and has members `first` and `last` (bytes in the word, kept by the map). What
// a cell owns elsewhere is the business of `Owner`: copied(Cell&) after a cell was copied,
// dropped(Cell&) before it is forgotten.
#pragma once

#include "base/check.h"
#include "trace/event.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle {

using CellId = std::uint32_t;  // 0 = none

template <typename Cell, typename Owner>
class PieceMap {
 public:
  // Cell 0 covers no access: its last byte comes before its first.
  explicit PieceMap(Owner& owner) : owner_(owner), cells_(1), splits_(1), recent_(kRecent) {
    cells_[0].first = 1;
  }

  Cell& operator[](CellId id) { return cells_[id]; }
  const Cell& operator[](CellId id) const { return cells_[id]; }

  // For an access to come: first its word, and when that has arrived, the cell.
  void prefetch_word(Address address) const {
    if (const Page* const page = recent_page(address)) __builtin_prefetch(&word_of(*page, address));
  }
  void prefetch_cell(Address address) const {
    const Page* const page = recent_page(address);
    if (page == nullptr) return;
    const std::uint32_t entry = word_of(*page, address);
    if (!(entry & kSplit)) __builtin_prefetch(&cells_[entry], 1);
  }

  // The cell that covers exactly these bytes, if it exists already.
  CellId find_exactly(Address address, std::uint32_t size) {
    const auto first = static_cast<std::uint32_t>(address & 7);
    if (first + size > 8) return 0;
    Page* const page = find_page(address >> kPageBits);
    if (page == nullptr) return 0;
    const std::uint32_t entry = word_of(*page, address);
    if (entry & kSplit) return 0;
    const Cell& found = cells_[entry];
    return found.first == first && found.last == first + size - 1 ? entry : 0;
  }

  // The cells that cover exactly these bytes, made where needed: f(CellId, Address of its first
  // byte). References to cells do not survive this.
  template <typename F>
  void cover(Address address, std::uint64_t size, F&& f) {
    while (size != 0) {
      const auto first = static_cast<std::uint32_t>(address & 7);
      const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(8 - first, size));
      pieces_of(word_of(make_page(address >> kPageBits), address), first, first + bytes - 1);
      for (std::size_t i = 0; i < piece_count_; ++i) {
        f(pieces_[i], (address & ~Address{7}) + cells_[pieces_[i]].first);
      }
      address += bytes;
      size -= bytes;
    }
  }

  // Likewise, but only words that were touched before: for freed memory.
  template <typename F>
  void cover_touched(Address address, std::uint64_t size, F&& f) {
    for_touched_words(address, size, [&](std::uint32_t&, Address at, std::uint64_t bytes) {
      cover(at, bytes, f);
    });
  }

  // Forgets these bytes.
  void clear(Address address, std::uint64_t size);

  const std::vector<Cell>& all() const { return cells_; }
  std::size_t size() const { return cells_.size() - 1 - free_cells_.size(); }

 private:
  static constexpr std::uint32_t kSplit = 0x80000000u;
  static constexpr unsigned kPageBits = 12;
  static constexpr std::size_t kWordsPerPage = 512;
  static constexpr std::size_t kRecent = 256;

  struct Page {
    std::array<std::uint32_t, kWordsPerPage> words{};
  };
  struct Recent {
    Address number = ~Address{0};
    Page* page = nullptr;
  };
  using SplitWord = std::array<CellId, 8>;  // by byte, 0 = untouched

  template <typename P>
  static auto& word_of(P& page, Address address) {
    return page.words[(address >> 3) & (kWordsPerPage - 1)];
  }

  const Page* recent_page(Address address) const {
    const Address number = address >> kPageBits;
    const Recent& recent = recent_[number % kRecent];
    return recent.number == number ? recent.page : nullptr;
  }

  Page* find_page(Address number) {
    Recent& recent = recent_[number % kRecent];
    if (recent.number == number) return recent.page;
    const auto at = pages_.find(number);
    if (at == pages_.end()) return nullptr;
    recent = {number, at->second.get()};
    return recent.page;
  }

  Page& make_page(Address number) {
    if (Page* const page = find_page(number)) return *page;
    std::unique_ptr<Page>& page = pages_[number];
    page = std::make_unique<Page>();
    return *page;
  }

  CellId new_cell(std::uint32_t first, std::uint32_t last);
  void free_cell(CellId id);
  void split_at(SplitWord& word, std::uint32_t byte);
  void pieces_of(std::uint32_t& entry, std::uint32_t first, std::uint32_t last);
  template <typename F>
  void for_touched_words(Address address, std::uint64_t size, F&& f);

  Owner& owner_;
  std::vector<Cell> cells_;
  std::vector<CellId> free_cells_;
  std::vector<SplitWord> splits_;
  std::vector<std::uint32_t> free_splits_;
  absl::flat_hash_map<Address, std::unique_ptr<Page>> pages_;
  std::vector<Recent> recent_;
  std::array<CellId, 8> pieces_{};  // what pieces_of found
  std::size_t piece_count_ = 0;
};

template <typename Cell, typename Owner>
CellId PieceMap<Cell, Owner>::new_cell(std::uint32_t first, std::uint32_t last) {
  CellId id{};
  if (!free_cells_.empty()) {
    id = free_cells_.back();
    free_cells_.pop_back();
  } else {
    HEDDLE_CHECK(cells_.size() < kSplit);
    id = static_cast<CellId>(cells_.size());
    cells_.emplace_back();
  }
  cells_[id].first = static_cast<std::uint8_t>(first);
  cells_[id].last = static_cast<std::uint8_t>(last);
  return id;
}

template <typename Cell, typename Owner>
void PieceMap<Cell, Owner>::free_cell(CellId id) {
  owner_.dropped(cells_[id]);
  cells_[id] = {};
  free_cells_.push_back(id);
}

// Makes `byte` the first of its cell.
template <typename Cell, typename Owner>
void PieceMap<Cell, Owner>::split_at(SplitWord& word, std::uint32_t byte) {
  if (byte == 0 || byte > 7 || word[byte] == 0 || word[byte] != word[byte - 1]) return;
  const CellId left = word[byte];
  const CellId right = new_cell(0, 0);
  cells_[right] = cells_[left];
  owner_.copied(cells_[right]);
  cells_[right].first = static_cast<std::uint8_t>(byte);
  cells_[left].last = static_cast<std::uint8_t>(byte - 1);
  for (std::uint32_t i = byte; i <= cells_[right].last; ++i) word[i] = right;
}

template <typename Cell, typename Owner>
void PieceMap<Cell, Owner>::pieces_of(std::uint32_t& entry, std::uint32_t first,
                                      std::uint32_t last) {
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

template <typename Cell, typename Owner>
void PieceMap<Cell, Owner>::clear(Address address, std::uint64_t size) {
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

template <typename Cell, typename Owner>
template <typename F>
void PieceMap<Cell, Owner>::for_touched_words(Address address, std::uint64_t size, F&& f) {
  while (size != 0) {
    Page* const page = find_page(address >> kPageBits);
    const Address page_end = ((address >> kPageBits) + 1) << kPageBits;
    const std::uint64_t on_page = std::min<std::uint64_t>(page_end - address, size);
    for (std::uint64_t done = 0; page != nullptr && done < on_page;) {
      const Address at = address + done;
      const std::uint64_t bytes = std::min<std::uint64_t>(8 - (at & 7), on_page - done);
      std::uint32_t& entry = word_of(*page, at);
      if (entry != 0) f(entry, at, bytes);
      done += bytes;
    }
    address += on_page;
    size -= on_page;
  }
}

}  // namespace heddle
