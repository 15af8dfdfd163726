// Pool: objects by index, in chunks of an arena that never move. All zero is a new object.
#pragma once

#include "detect/avio/arena.h"

#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace heddle::avio {

template <typename T>
class Pool {
 public:
  std::uint32_t add(Arena& arena) {
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (size_ % kChunk == 0) chunks_.push_back(static_cast<T*>(arena.take(sizeof(T) * kChunk)));
    return size_++;
  }
  // The object has been cleared.
  void remove(std::uint32_t index) { free_.push_back(index); }
  T& operator[](std::uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }
  const T& operator[](std::uint32_t index) const { return chunks_[index / kChunk][index % kChunk]; }
  std::size_t live() const { return size_ - free_.size(); }

 private:
  static constexpr std::uint32_t kChunk = 64;
  static_assert(std::has_single_bit(sizeof(T)) && std::is_trivially_destructible_v<T>);
  std::vector<T*> chunks_;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace heddle::avio
