// What is known about every 8-byte granule of the target's memory: a byte that says whose it is,
// and a 64-bit word besides. The bytes alone answer nearly every question, and eight times as many
// of them fit the cache; they lie apart from the words.
//
// Two levels of direct tables, both of reserved address space that the kernel fills with zeros
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
  static constexpr std::size_t kChunkGranules = std::size_t{1} << (kChunkBits - kGranuleBits);

  struct Chunk {
    std::uint8_t states[kChunkGranules];
    std::uint64_t words[kChunkGranules];
  };

  Shadow();
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  static bool covers(Address address) { return address >> kAddressBits == 0; }

  // The chunk of `address`, which must be covered, and the place of its granule in there.
  Chunk& chunk(Address address) {
    Chunk* chunk = table_[address >> kChunkBits];
    if (__builtin_expect(chunk == nullptr, 0)) chunk = make_chunk(address);
    return *chunk;
  }
  static std::size_t place(Address address) {
    return (address & ((Address{1} << kChunkBits) - 1)) >> kGranuleBits;
  }

  // Whether all granules from the one of `first` to the one of `last`, both covered, have this
  // state, which is not 0.
  bool all(Address first, Address last, std::uint8_t state) const;

  // Forgets the granules that lie in [address, address + size).
  void clear(Address address, std::uint64_t size);

 private:
  Chunk* make_chunk(Address address);

  Chunk** table_;
  std::vector<Chunk*> chunks_;
};

}  // namespace heddle::collect
