// Location: where the state of a location is, and what that consists of. All of it is found from
// the stamp of its latest access.
//
// The memory of a program is cut into chunks of 1 MB. A chunk that is used has a block of reserved
// memory, which the kernel fills with zeros where it is touched. It begins with the stamps of the
// latest accesses:
//
//   at 0      a stamp for each cell: of the cell, or of its first half
//   kSecond   a stamp for each cell: of its second half
//   kBytes    a stamp for each byte
//
// Behind that follows the same once more for each part of a History (avio/history.h): the parts of
// one location are kArray apart. Few locations need all of them, and what is never touched costs no
// memory. Last comes
//
//   kUsed     which of the chunk's 4 KB pages have any stamps
#pragma once

#include "detect/avio/stamp.h"
#include "trace/event.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace heddle::avio {

inline constexpr unsigned kCellBits = 3;
inline constexpr unsigned kChunkBits = 20;
inline constexpr Address kInChunk = (Address{1} << kChunkBits) - 1;
inline constexpr Address kCellInChunk = kInChunk & ~Address{7};

// Offsets in a chunk's block.
inline constexpr std::size_t kSecond = std::size_t{1} << kChunkBits;
inline constexpr std::size_t kBytes = 2 * kSecond;
inline constexpr std::size_t kArray = kBytes + sizeof(Stamp) * kSecond;
inline constexpr std::size_t kArrays = 5;
inline constexpr std::size_t kUsed = kArrays * kArray;
inline constexpr unsigned kPageBits = 12;
inline constexpr std::size_t kPagesOfChunk = kSecond >> kPageBits;
inline constexpr std::size_t kBlock = kUsed + (std::size_t{1} << kPageBits);
inline constexpr std::size_t kBlockAlignment = std::bit_ceil(kBlock);

struct Location {
  Stamp* stamp{};

  static Location of(std::byte* chunk, std::size_t offset) {
    return {reinterpret_cast<Stamp*>(chunk + offset)};
  }

  // The latest access, with all flags.
  Stamp& last() const { return part(0); }
  // Of its History.
  Stamp& before() const { return part(1); }
  Stamp& reader() const { return part(2); }
  Stamp& write() const { return part(3); }
  std::uint64_t& others() const { return part(4); }

  Location second_half() const { return {stamp + kSecond / sizeof(Stamp)}; }
  // Of a half: its first byte.
  Location bytes() const {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(stamp) % kBlockAlignment;
    const bool second = offset >= kSecond;
    return of(reinterpret_cast<std::byte*>(stamp) - offset,
              kBytes + sizeof(Stamp) * (second ? offset - kSecond + 4 : offset));
  }
  Location next(std::ptrdiff_t n = 1) const { return {stamp + n}; }

 private:
  Stamp& part(std::size_t number) const { return stamp[number * (kArray / sizeof(Stamp))]; }
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

}  // namespace heddle::avio
