#include "detect/avio/arena.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

namespace heddle::avio {
namespace {

constexpr std::size_t kFirstPiece = std::size_t{64} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAlignment = 64;

}  // namespace

void Arena::Release::operator()(void* piece) const {
  std::free(piece);
}

void* Arena::take(std::size_t bytes) {
  HEDDLE_CHECK(std::has_single_bit(bytes) && bytes >= kAlignment && bytes <= kLargest);
  taken_ += bytes;
  std::vector<void*>& free = free_[static_cast<std::size_t>(std::countr_zero(bytes))];
  void* block = nullptr;
  if (!free.empty()) {
    block = free.back();
    free.pop_back();
  } else {
    if (bytes > left_) add_piece(bytes);
    block = next_;
    next_ += bytes;
    left_ -= bytes;
  }
  return std::memset(block, 0, bytes);
}

void Arena::give_back(void* block, std::size_t bytes) {
  taken_ -= bytes;
  free_[static_cast<std::size_t>(std::countr_zero(bytes))].push_back(block);
}

// What is left of the piece before is lost: less than a block of the size asked for.
void Arena::add_piece(std::size_t at_least) {
  const std::size_t wanted = kFirstPiece << std::min<std::size_t>(pieces_.size(), 5);
  const std::size_t bytes = std::max(wanted, at_least);
  const bool huge = bytes >= kHugePage;
  void* const piece = std::aligned_alloc(huge ? kHugePage : kAlignment, bytes);
  HEDDLE_CHECK(piece != nullptr);
  pieces_.emplace_back(piece);
  // Refused where huge pages are not to be had: ordinary ones do as well, slower.
  if (huge) madvise(piece, bytes, MADV_HUGEPAGE);
  next_ = static_cast<std::byte*>(piece);
  left_ = bytes;
}

}  // namespace heddle::avio
