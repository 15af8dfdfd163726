// What is known about every 8-byte granule of the target's memory: a byte that says whose it is,
// and a 64-bit word besides. The bytes alone answer nearly every question, and eight times as many
// of them fit the cache; they lie apart from the words.
//
// The bytes are one array over the whole address space, reserved and filled with zeros by the
// kernel where it is touched, so that finding one is a shift and a load. The words, which are
// needed less often, have two levels of such tables.
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

  Shadow();
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // False: there was no address space for it, and nothing else may be called.
  bool made() const { return states_ != nullptr; }

  static bool covers(Address address) { return address >> kAddressBits == 0; }

  // Of the granule of `address`, which must be covered.
  std::uint8_t& state(Address address) { return states_[address >> kGranuleBits]; }
  std::uint64_t& word(Address address) {
    if (chunks_[address >> kChunkBits] == nullptr) make_chunk(address);
    return word(chunks_, address);
  }

  // For who has no time to ask: the states, by granule, and words of which one in the same chunk
  // has been asked for.
  std::uint8_t* states() { return states_; }
  std::uint64_t* const* chunks() { return chunks_; }
  static std::uint64_t& word(std::uint64_t* const* chunks, Address address) {
    return chunks[address >> kChunkBits][(address >> kGranuleBits) % kChunkWords];
  }

  // Whether all granules from the one of `first` to the one of `last`, both covered, have this
  // state.
  bool all(Address first, Address last, std::uint8_t state) const;

  // Forgets the granules that lie in [address, address + size).
  void clear(Address address, std::uint64_t size);

 private:
  static constexpr unsigned kChunkBits = 24;  // bytes of the target per chunk, as a power of two
  static constexpr std::size_t kChunkWords = std::size_t{1} << (kChunkBits - kGranuleBits);
  static constexpr std::size_t kChunks = std::size_t{1} << (kAddressBits - kChunkBits);
  static constexpr std::size_t kStates = std::size_t{1} << (kAddressBits - kGranuleBits);

  void make_chunk(Address address);

  std::uint8_t* states_ = nullptr;
  std::uint64_t** chunks_ = nullptr;
  std::vector<std::uint64_t*> chunks_made_;
};

}  // namespace heddle::collect
