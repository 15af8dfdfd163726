// Pages: where the state of every location is, by address.
//
// Of each location the latest access is kept (a Stamp) and, once it has passed from one thread to
// another, its last write and its History. Locations are 8-byte cells, halves of them, or single
// bytes: whatever the program accesses as one. Where a state lies follows from the address and the
// size of the location alone, so that finding it is two loads and asks nothing.
//
// The memory of a program is cut into chunks of 1 MB. A chunk that is used has a block of reserved
// memory, which the kernel fills with zeros where it is touched:
//
//   at 0      a stamp for each cell: of the cell, or of its first half
//   kSecond   a stamp for each cell: of its second half
//   kBytes    a stamp for each byte
//   kWrite    the last write of each of these locations
//   kHistory  a history for each of them, three times as far
//   kUsed     which of the chunk's 4 KB pages have any stamps
//
// A cell is one location until somebody accesses less of it: then both its halves have the flag
// kHalf. A half is one location until somebody accesses less of that: then its stamp is kByBytes.
// Only what is forgotten comes together again.
#pragma once

#include "detect/avio/history.h"
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

inline constexpr unsigned kCellBits = 3;
inline constexpr unsigned kChunkBits = 20;
inline constexpr Address kInChunk = (Address{1} << kChunkBits) - 1;
inline constexpr Address kCellInChunk = kInChunk & ~Address{7};

// Offsets in a chunk's block.
inline constexpr std::size_t kSecond = std::size_t{1} << kChunkBits;
inline constexpr std::size_t kBytes = 2 * kSecond;
inline constexpr std::size_t kWrite = kBytes + sizeof(Stamp) * kSecond;
inline constexpr std::size_t kHistory = 2 * kWrite;
inline constexpr std::size_t kHistoryTimes = sizeof(History) / sizeof(Stamp);
inline constexpr std::size_t kUsed = kHistory + kHistoryTimes * kWrite;
inline constexpr unsigned kPageBits = 12;
inline constexpr std::size_t kPagesOfChunk = kSecond >> kPageBits;
inline constexpr std::size_t kBlock = kUsed + (std::size_t{1} << kPageBits);

// A location of a chunk: the offset of its stamp.
struct Location {
  std::byte* chunk{};
  std::size_t offset{};

  Stamp& last() const { return *reinterpret_cast<Stamp*>(chunk + offset); }
  // Without flags; the last one since a second thread came, unless the latest access is that.
  Stamp& write() const { return *reinterpret_cast<Stamp*>(chunk + kWrite + offset); }
  History& history() const {
    return *reinterpret_cast<History*>(chunk + kHistory + kHistoryTimes * offset);
  }
  Location second_half() const { return {chunk, offset + kSecond}; }
  // Of a half: its first byte.
  Location bytes() const {
    const bool second = offset >= kSecond;
    return {chunk, kBytes + sizeof(Stamp) * (second ? offset - kSecond + 4 : offset)};
  }
  Location next() const { return {chunk, offset + sizeof(Stamp)}; }
};

constexpr std::size_t offset_of_cell(Address address) {
  return address & kCellInChunk;
}
constexpr std::size_t offset_of_half(Address address) {
  return (address & kCellInChunk) + ((address & 4) << (kChunkBits - 2));
}
constexpr std::size_t offset_of_byte(Address address) {
  return kBytes + sizeof(Stamp) * (address & kInChunk);
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
    block[kUsed + (address >> kPageBits) % kPagesOfChunk] = std::byte{1};
    return {block, offset_of_cell(address)};
  }

  void split(Location cell);         // into halves
  Location by_bytes(Location half);  // from now on if not already; its first byte
  void copy_history(Location from, Location to);

  // The bytes from `first` to `last`.
  void forget(Address first, Address last);
  void forget_everything();

  std::size_t shared() const;  // locations with histories
  std::size_t bytes() const;   // of memory

 private:
  std::byte* find_chunk(std::uint64_t number) const;
  std::byte* chunk(std::uint64_t number) {
    std::byte* const known = find_chunk(number);
    return known != nullptr ? known : make_chunk(number);
  }
  std::byte* make_chunk(std::uint64_t number);

  void forget_cell(Location cell, std::uint8_t mask);
  void forget_half(Location half, std::uint8_t mask);
  void clear(Location location, Stamp untouched);
  void drop_history(Location location);
  void forget_in_page(std::byte* chunk, std::size_t from, std::size_t to);
  void forget_in_chunk(std::byte* chunk, std::size_t from, std::size_t to);

  Histories& histories_;
  std::byte** table_;
  absl::flat_hash_map<std::uint64_t, std::byte*> far_;        // chunks that no program has
  std::vector<std::pair<std::uint64_t, std::byte*>> chunks_;  // all, with their numbers
};

}  // namespace heddle::avio
