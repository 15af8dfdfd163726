// Arena: the memory of a Shadow, in blocks of powers of two.
//
// A shadow is many small blocks that live and die together, so they come from few large pieces.
// Huge pages were tried for these: finding and clearing them took the kernel longer than they
// saved.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace heddle::avio {

class Arena {
 public:
  // `bytes` is a power of two, from 16 to kLargest. The block is zero, and aligned to its size or
  // to a cache line.
  void* take(std::size_t bytes);
  void give_back(void* block, std::size_t bytes);

  std::size_t bytes() const { return taken_; }  // in blocks that are out

  static constexpr std::size_t kLargest = std::size_t{1} << 20;

 private:
  struct Release {
    std::size_t bytes;
    void operator()(void* piece) const;
  };

  void add_piece(std::size_t at_least);

  std::vector<std::unique_ptr<void, Release>> pieces_;
  std::byte* next_ = nullptr;  // in the last piece
  std::size_t left_ = 0;
  std::size_t taken_ = 0;
  std::array<std::vector<void*>, 21> free_;  // by the logarithm of their size
};

}  // namespace heddle::avio
