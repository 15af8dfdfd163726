// Pages: where the state of every location is, by address.
//
// Of each location the latest access is kept (a Stamp) and, once it has passed from one thread to
// another, its History. Locations are 8-byte cells, halves of them, or single bytes: whatever the
// program accesses as one. Most pages hold only 8-byte cells (`whole`), most others only cells and
// halves; so a page is an array of stamps for the ones or the others, and an array of histories of
// the same shape, once one is needed:
//
//   whole    a stamp for each cell
//   halves   two for each cell. The second is kWhole while the cell is one location, whose stamp
//            is the first. A number below kFirstStamp stands for a half that is kept by bytes.
//
// A page is split when somebody accesses less than a cell, and so are its cells, one by one. Only
// memory that is forgotten comes together again.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/history.h"
#include "detect/avio/pool.h"
#include "detect/avio/stamp.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

// The bit of a stamp: several threads have come here, and there is a history.
inline constexpr Stamp kHasHistory = 1;
// What is less than this says how a location is kept; 0 = untouched.
inline constexpr Stamp kFirstStamp = Stamp{1} << kOrdinalShift;
inline constexpr Stamp kWhole = 1;

inline constexpr unsigned kCellBits = 3;
inline constexpr unsigned kPageBits = 11;
inline constexpr std::size_t kPageCells = std::size_t{1} << (kPageBits - kCellBits);

class Page {
 public:
  bool exists() const { return last_ != 0; }
  bool halves() const { return (last_ & 1) != 0; }
  Stamp* last() const { return reinterpret_cast<Stamp*>(last_ & ~std::uint64_t{1}); }
  History* histories() const { return histories_; }  // may be null while nothing is shared
  std::size_t locations() const { return halves() ? 2 * kPageCells : kPageCells; }

 private:
  friend class Pages;
  std::uint64_t last_{};  // the address of the stamps, and a bit: halves
  History* histories_{};
};

// A half that is kept by bytes.
struct ByteCell {
  std::array<Stamp, 4> last{};
  History* histories{};  // null while nothing is shared
  std::array<std::uint64_t, 3> unused{};
};

class Pages {
 public:
  explicit Pages(Histories& histories);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static std::size_t cell_of(Address address) { return address >> kCellBits & (kPageCells - 1); }
  // Null where nothing was ever touched. The address is one that a program can have.
  Page* find(Address address) const {
    Chunk* const chunk = table_[address >> kChunkBits];
    if (chunk == nullptr) return nullptr;
    Page& page = chunk->pages[address >> kPageBits & (kChunkPages - 1)];
    return page.exists() ? &page : nullptr;
  }
  // How many times an access that moves by `step` touches the page of `address` first.
  static std::uint64_t steps_left(Address address, std::uint64_t step) {
    constexpr Address kInPage = (Address{1} << kPageBits) - 1;
    if (step == 8) return ((~address & kInPage) >> 3) + 1;
    if (step == 0) return ~std::uint64_t{0};
    if (static_cast<std::int64_t>(step) > 0) return (~address & kInPage) / step + 1;
    return (address & kInPage) / (0 - step) + 1;
  }
  // Any address will do. A new page is whole if `whole`.
  Page& find_or_make(Address address, bool whole);

  History* histories_of(Page& page) {
    return page.histories_ != nullptr ? page.histories_ : make_histories(page);
  }
  History* histories_of(ByteCell& cell) {
    if (cell.histories == nullptr) cell.histories = take<History>(cell.last.size());
    return cell.histories;
  }

  void split(Page& page);
  void split_cell(Page& page, std::size_t cell);  // of a page of halves
  // A half as one that is kept by bytes, from now on if not already.
  ByteCell& by_bytes(Page& page, std::size_t half);

  // The bytes from `first` to `last`.
  void forget(Address first, Address last);
  void forget_everything();

  std::size_t shared() const;  // locations with histories
  std::size_t bytes() const { return arena_.bytes(); }

  static constexpr unsigned kAddressBits = 47;  // user space

 private:
  static constexpr unsigned kChunkBits = 20;
  static constexpr std::size_t kChunkPages = std::size_t{1} << (kChunkBits - kPageBits);
  struct Chunk {
    std::array<Page, kChunkPages> pages;
  };

  template <typename T>
  T* take(std::size_t count) {
    return static_cast<T*>(arena_.take(count * sizeof(T)));
  }
  Chunk* find_chunk(std::uint64_t number) const;
  Chunk& chunk(std::uint64_t number);
  History* make_histories(Page& page);
  ByteCell& byte_cell(Stamp number) { return byte_cells_[static_cast<std::uint32_t>(number - 2)]; }
  static bool is_by_bytes(Stamp last) { return last > kWhole && last < kFirstStamp; }

  void forget_cell(Page& page, std::size_t cell, std::uint8_t mask);
  void forget_half(Page& page, std::size_t half, std::uint8_t mask);
  void clear(Page& page, std::size_t location);
  void forget_in_chunk(Chunk& chunk, Address first, Address last);
  void drop(Page& page);

  Histories& histories_;
  Chunk** table_;
  absl::flat_hash_map<std::uint64_t, Chunk*> far_;        // chunks that no program has
  std::vector<std::pair<std::uint64_t, Chunk*>> chunks_;  // all, with their numbers
  Arena arena_;
  Pool<ByteCell> byte_cells_;
};

}  // namespace heddle::avio
