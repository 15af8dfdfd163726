// One 64-bit word for every 8-byte granule of the target's memory, in two levels of direct tables:
// two loads per look-up. Both levels are reserved address space that the kernel fills with zeros
// where it is touched.
#pragma once

#include "trace/event.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::collect {

class Shadow {
 public:
  static constexpr unsigned kGranuleBits = 3;
  static constexpr unsigned kAddressBits = 47;  // user space
  static constexpr unsigned kChunkBits = 24;    // bytes of the target per chunk, as a power of two

  Shadow();
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  static bool covers(Address address) { return address >> kAddressBits == 0; }

  // The word of the granule of `address`, which must be covered.
  std::uint64_t& at(Address address) {
    std::uint64_t* chunk = table_[address >> kChunkBits];
    if (__builtin_expect(chunk == nullptr, 0)) chunk = make_chunk(address);
    return chunk[(address & ((Address{1} << kChunkBits) - 1)) >> kGranuleBits];
  }

  // Forgets the granules that lie in [address, address + size).
  void clear(Address address, std::uint64_t size);

 private:
  std::uint64_t* make_chunk(Address address);

  std::uint64_t** table_;
  std::vector<std::uint64_t*> chunks_;
};

}  // namespace heddle::collect
