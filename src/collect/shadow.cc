#include "collect/shadow.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace heddle::collect {
namespace {

constexpr std::size_t kTableBytes =
    (std::size_t{1} << (Shadow::kAddressBits - Shadow::kChunkBits)) * sizeof(std::uint64_t*);
constexpr std::size_t kChunkBytes =
    (std::size_t{1} << (Shadow::kChunkBits - Shadow::kGranuleBits)) * sizeof(std::uint64_t);

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HEDDLE_CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace

Shadow::Shadow() : table_(static_cast<std::uint64_t**>(reserve(kTableBytes))) {}

Shadow::~Shadow() {
  for (std::uint64_t* chunk : chunks_) munmap(chunk, kChunkBytes);
  munmap(static_cast<void*>(table_), kTableBytes);
}

std::uint64_t* Shadow::make_chunk(Address address) {
  auto* chunk = static_cast<std::uint64_t*>(reserve(kChunkBytes));
  chunks_.push_back(chunk);
  table_[address >> kChunkBits] = chunk;
  return chunk;
}

void Shadow::clear(Address address, std::uint64_t size) {
  if (!covers(address) || size == 0 || size > (Address{1} << kAddressBits) - address) return;
  const Address end = address + size;
  while (address < end) {
    const Address chunk_end = ((address >> kChunkBits) + 1) << kChunkBits;
    const Address part_end = std::min(end, chunk_end);
    if (std::uint64_t* chunk = table_[address >> kChunkBits]; chunk != nullptr) {
      const Address mask = (Address{1} << kChunkBits) - 1;
      const std::size_t first = (address & mask) >> kGranuleBits;
      const std::size_t last = ((part_end - 1) & mask) >> kGranuleBits;
      std::memset(chunk + first, 0, (last - first + 1) * sizeof(std::uint64_t));
    }
    address = part_end;
  }
}

}  // namespace heddle::collect
