#include "detect/avio/arena.h"

#include "base/check.h"
#include "base/no_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <sys/mman.h>

namespace heddle::avio {
namespace {

constexpr std::size_t kFirstPiece = std::size_t{64} << 10;
constexpr std::size_t kSmallest = 16;
constexpr std::size_t kLine = 64;

}  // namespace

void Arena::Release::operator()(void* piece) const {
  munmap(piece, bytes);
}

void* Arena::take(std::size_t bytes) {
  HEDDLE_CHECK(std::has_single_bit(bytes) && bytes >= kSmallest && bytes <= kLargest);
  taken_ += bytes;
  std::vector<void*>& free = free_[static_cast<std::size_t>(std::countr_zero(bytes))];
  if (!free.empty()) {
    void* const block = free.back();
    free.pop_back();
    return std::memset(block, 0, bytes);
  }
  const std::size_t skipped = left_ % std::min(bytes, kLine);  // pieces end at a line
  next_ += skipped;
  left_ -= skipped;
  if (bytes > left_) add_piece(bytes);
  void* const block = next_;  // the kernel's memory is zero
  next_ += bytes;
  left_ -= bytes;
  return block;
}

void Arena::give_back(void* block, std::size_t bytes) {
  taken_ -= bytes;
  free_[static_cast<std::size_t>(std::countr_zero(bytes))].push_back(block);
}

// What is left of the piece before is lost: less than a block of the size asked for.
void Arena::add_piece(std::size_t at_least) {
  const std::size_t wanted = kFirstPiece << std::min<std::size_t>(pieces_.size(), 5);
  const std::size_t bytes = std::max(wanted, at_least);
  void* const piece =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) no_memory();
  pieces_.emplace_back(piece, Release{bytes});
  next_ = static_cast<std::byte*>(piece);
  left_ = bytes;
}

}  // namespace heddle::avio
