// A vector that never moves its elements and never needs twice its size while it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace heddle::svd {

template <typename T, unsigned kShift = 10>
class Pool {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return chunks_[i >> kShift][i & kMask]; }
  const T& operator[](std::size_t i) const { return chunks_[i >> kShift][i & kMask]; }

  // Returns the new element's index.
  std::size_t push_back(const T& value) {
    if (size_ >> kShift == chunks_.size())
      chunks_.push_back(std::make_unique_for_overwrite<T[]>(kMask + 1));
    (*this)[size_] = value;
    return size_++;
  }

 private:
  static constexpr std::size_t kMask = (std::size_t{1} << kShift) - 1;

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace heddle::svd
