// A vector of plain values that grows without copying and without needing twice its size.
//
// Elements are one array, because every access of the program asks for some of them. Above a
// megabyte the array is a mapping of its own, which the kernel moves to a larger place when it must
// grow; memory is taken as it is touched. References do not survive push_back.
#pragma once

#include "base/check.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace heddle::svd {

template <typename T>
class Pool {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Pool() = default;
  Pool(Pool&& other) noexcept { swap(other); }
  Pool& operator=(Pool&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Pool() {
    if (is_mapped(room_)) {
      munmap(data_, room_ * sizeof(T));
    } else {
      std::free(data_);
    }
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

  // These keep the memory.
  void clear() { size_ = 0; }
  void truncate(std::size_t size) { size_ = size; }

  // Returns the new element's index.
  std::size_t push_back(T value) {
    if (size_ == room_) grow();
    data_[size_] = value;
    return size_++;
  }

 private:
  static constexpr std::size_t kFirst = 64;
  static constexpr std::size_t kLarge = std::size_t{8} << 20;  // bytes

  static bool is_mapped(std::size_t room) { return room * sizeof(T) >= std::size_t{1} << 20; }

  void grow() {
    const std::size_t room = room_ == 0 ? kFirst : 2 * room_;
    void* grown = nullptr;
    if (!is_mapped(room)) {
      grown = std::realloc(data_, room * sizeof(T));
    } else if (is_mapped(room_)) {
      grown = mremap(data_, room_ * sizeof(T), room * sizeof(T), MREMAP_MAYMOVE);
    } else {
      grown = mmap(nullptr, room * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
      if (grown != MAP_FAILED && data_ != nullptr) std::memcpy(grown, data_, size_ * sizeof(T));
      std::free(data_);
    }
    HEDDLE_CHECK(grown != nullptr && grown != MAP_FAILED);
    // What is used one after another lies anywhere: small pages would be looked up again and again.
    if (room * sizeof(T) >= kLarge) madvise(grown, room * sizeof(T), MADV_HUGEPAGE);
    data_ = static_cast<T*>(grown);
    room_ = room;
  }
  void swap(Pool& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace heddle::svd
