// Granules: what counts as one location.
//
// Memory is kept in cells of eight eighths: 8 bytes of the program, or a 64-byte line. An access
// touches some eighths of a cell, rounded to whole granules of 1, 2, 4 or 8 bytes, or the line.
#pragma once

#include "trace/event.h"

#include <cstdint>

namespace heddle::avio {

constexpr bool is_granule(unsigned granule) {
  return granule == 1 || granule == 2 || granule == 4 || granule == 8 || granule == 64;
}

struct Granules {
  unsigned size;  // is_granule

  unsigned cell_shift() const { return size == 64 ? 6 : 3; }

  // Which eighths the bytes from `first` to `last`, both in one cell, touch.
  std::uint8_t mask(Address first, Address last) const {
    if (size == 64) return 0xff;
    const unsigned from = static_cast<unsigned>(first & 7) & ~(size - 1);
    const unsigned to = static_cast<unsigned>(last & 7) | (size - 1);
    return static_cast<std::uint8_t>((0xffu << from) & (0xffu >> (7 - (to & 7))));
  }

  // From the first and to the last byte of the granules, in cells of 8 bytes.
  Address first(Address byte) const {
    return size == 64 ? byte >> 6 << 3 : byte & ~Address{size - 1};
  }
  Address last(Address byte) const {
    return size == 64 ? (byte >> 6 << 3) + 7 : byte | Address{size - 1};
  }
};

}  // namespace heddle::avio
