// Pages: where the state of every location is, by address.
//
// Of each location the latest access is kept (a Stamp) and, once it has passed from one thread to
// another, its History. Locations are 8-byte cells, halves of them, or single bytes: whatever the
// program accesses as one. Where a state lies follows from the address and the size of the location
// alone (avio/location.h), so that finding it is two loads and asks nothing.
//
// A cell is one location until somebody accesses less of it: then both its halves have the flag
// kHalf. A half is one location until somebody accesses less of that: then its stamp is kByBytes.
// Only what is forgotten comes together again.
#pragma once

#include "detect/avio/history.h"
#include "detect/avio/location.h"
#include "detect/avio/stamp.h"
#include "trace/event.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

// What is less than this says how a location is kept; without flags 0 = untouched.
inline constexpr Stamp kFirstStamp = Stamp{1} << kOrdinalShift;
inline constexpr Stamp kByBytes = kFlags + 1 + kHalf;

constexpr bool is_untouched(Stamp last) {
  return last <= kFlags;
}

class Pages {
 public:
  explicit Pages(Histories& histories);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static constexpr unsigned kAddressBits = 47;  // user space
  // The bits that no address has for which there is a place in the table.
  static constexpr Address kBeyond = ~((Address{1} << kAddressBits) - 1);

  // The block of the address's chunk, which is none of kBeyond; null where nothing was ever
  // touched.
  std::byte* find(Address address) const { return table_[address >> kChunkBits]; }
  std::byte* const* table() const { return table_; }
  // Any address will do. It is about to be touched.
  Location find_or_make(Address address) {
    std::byte* const block = chunk(address >> kChunkBits);
    use_page(block, address >> kPageBits);
    return Location::of(block, offset_of_cell(address));
  }

  // What lies in a chunk that there is, from `first` to `last`, is about to be touched.
  void use(Address first, Address last) {
    std::byte* const block = find(first);
    for (std::uint64_t page = first >> kPageBits; page <= last >> kPageBits; ++page) {
      use_page(block, page);
    }
  }

  void split(Location cell);         // into halves
  Location by_bytes(Location half);  // from now on if not already; its first byte

  // The bytes from `first` to `last`.
  void forget(Address first, Address last);
  void forget_everything();

  std::size_t shared() const;  // locations with histories
  std::size_t bytes() const;   // of memory

 private:
  static void use_page(std::byte* block, std::uint64_t page) {
    block[kUsed + page % kPagesOfChunk] = std::byte{1};
  }
  std::byte* find_chunk(std::uint64_t number) const;
  std::byte* chunk(std::uint64_t number) {
    std::byte* const known = find_chunk(number);
    return known != nullptr ? known : make_chunk(number);
  }
  std::byte* make_chunk(std::uint64_t number);

  void forget_cell(Location cell, std::uint8_t mask);
  void forget_half(Location half, std::uint8_t mask);
  void clear(Location location, Stamp untouched);
  void forget_in_page(std::byte* chunk, std::size_t from, std::size_t to);
  void forget_in_chunk(std::byte* chunk, std::size_t from, std::size_t to);

  Histories& histories_;
  std::byte** table_;
  absl::flat_hash_map<std::uint64_t, std::byte*> far_;        // chunks that no program has
  std::vector<std::pair<std::uint64_t, std::byte*>> chunks_;  // all, with their numbers
};

}  // namespace heddle::avio
