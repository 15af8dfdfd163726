// Which access each cell of a plane is about (blocks.h), in two bytes a cell where that is enough.
//
// An access is 64 bits: a context and an ordinal. But those of a page come from few contexts and in
// stretches, so a cell's is a *code*: a distance from one of a few bases of the plane. Codes have
// two bytes at first, which do for memory that is gone through step by step; a plane that needs
// more bases than they can tell apart gets codes of four bytes, and then whole accesses.
#pragma once

#include "detect/svd/notes.h"
#include "detect/svd/page_pool.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::svd {

struct GiveBackCodes {
  PagePool* pool = nullptr;  // nullptr: the heap
  void operator()(std::uint16_t* codes) const {
    pool != nullptr ? pool->give_back(codes) : delete[] codes;
  }
};

class Accesses {
 public:
  // `scattered`: two bytes will hardly be enough. Codes that fill a page come from the pool.
  Accesses(std::size_t cells, bool scattered, PagePool& pool);
  bool is_short() const { return short_ != nullptr; }

  // 0 for a cell that has none.
  AccessRef operator[](std::uint64_t cell) const {
    if (short_ != nullptr) return decoded(short_[cell], kShortBits);
    if (long_ != nullptr) return decoded(long_[cell], kLongBits);
    return whole_[cell];
  }
  // Returns how many bytes more it needed.
  std::size_t set(std::uint64_t cell, AccessRef access) {
    const AccessRef distance = access - base_;
    if (distance >= reach_) [[unlikely]]
      return set_slowly(cell, access);
    put(cell, static_cast<std::uint32_t>(distance));
    return 0;
  }
  // The same with `copies` cells for each one.
  Accesses split(unsigned copies, PagePool& pool) const;

  std::size_t bytes() const {
    const std::size_t width = short_ != nullptr  ? sizeof(short_[0])
                              : long_ != nullptr ? sizeof(long_[0])
                                                 : sizeof(whole_[0]);
    return sizeof(*this) + cells_ * width;
  }

 private:
  static constexpr unsigned kShortBits = 12;  // of the distance; those above are the base's number
  static constexpr unsigned kLongBits = 27;
  static constexpr std::uint32_t kShortBases = 1u << (16 - kShortBits);
  static constexpr std::uint32_t kLongBases = 1u << (32 - kLongBits);

  using Short = std::unique_ptr<std::uint16_t[], GiveBackCodes>;

  static Short make_short(std::size_t cells, PagePool& pool);
  AccessRef decoded(std::uint32_t code, unsigned bits) const {
    return bases_[code >> bits] + (code & ((1u << bits) - 1));
  }
  void put(std::uint64_t cell, std::uint32_t distance) {
    if (short_ != nullptr) {
      short_[cell] = static_cast<std::uint16_t>(base_number_ << kShortBits | distance);
    } else {
      long_[cell] = base_number_ << kLongBits | distance;
    }
  }
  std::size_t set_slowly(std::uint64_t cell, AccessRef access);
  bool use_base_for(AccessRef access);
  void widen();

  AccessRef base_ = 0;                  // the one that was used last
  AccessRef reach_ = 1u << kShortBits;  // what a distance can be; 0: accesses are whole
  std::uint32_t base_number_ = 0;
  std::size_t cells_;
  Short short_;  // one of these three
  std::unique_ptr<std::uint32_t[]> long_;
  std::unique_ptr<AccessRef[]> whole_;
  std::vector<AccessRef> bases_ = {0};  // the first is 0, for cells without an access
};

}  // namespace heddle::svd
