#include "collect/shadow.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace heddle::collect {
namespace {

constexpr std::size_t kTableBytes =
    (std::size_t{1} << (Shadow::kAddressBits - Shadow::kChunkBits)) * sizeof(Shadow::Chunk*);
constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HEDDLE_CHECK(memory != MAP_FAILED);
  return memory;
}

// At a multiple of a huge page, with nothing left over on either side.
void* reserve_aligned(std::size_t bytes) {
  auto* memory = static_cast<char*>(reserve(bytes + kHugePage));
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage) % kHugePage;
  if (before != 0) munmap(memory, before);
  if (before != kHugePage) munmap(memory + before + bytes, kHugePage - before);
  return memory + before;
}

}  // namespace

Shadow::Shadow() : table_(static_cast<Chunk**>(reserve(kTableBytes))) {}

Shadow::~Shadow() {
  for (Chunk* chunk : chunks_) munmap(chunk, sizeof(Chunk));
  munmap(static_cast<void*>(table_), kTableBytes);
}

Shadow::Chunk* Shadow::make_chunk(Address address) {
  static_assert(sizeof(Chunk) % kHugePage == 0);
  auto* chunk = static_cast<Chunk*>(reserve_aligned(sizeof(Chunk)));
  chunks_.push_back(chunk);
  table_[address >> kChunkBits] = chunk;
  return chunk;
}

bool Shadow::all(Address first, Address last, std::uint8_t state) const {
  while (true) {
    const Chunk* const chunk = table_[first >> kChunkBits];
    if (chunk == nullptr) return false;
    const Address chunk_last = first | ((Address{1} << kChunkBits) - 1);
    const std::uint8_t* at = chunk->states + place(first);
    const std::uint8_t* const end = chunk->states + place(std::min(last, chunk_last)) + 1;
    const std::uint64_t eight = state * 0x0101010101010101u;
    for (; end - at >= 8; at += 8) {
      std::uint64_t found;
      std::memcpy(&found, at, sizeof found);
      if (found != eight) return false;
    }
    for (; at < end; ++at) {
      if (*at != state) return false;
    }
    if (last <= chunk_last) return true;
    first = chunk_last + 1;
  }
}

void Shadow::clear(Address address, std::uint64_t size) {
  if (!covers(address) || size == 0 || size > (Address{1} << kAddressBits) - address) return;
  const Address end = address + size;
  while (address < end) {
    const Address chunk_end = ((address >> kChunkBits) + 1) << kChunkBits;
    const Address part_end = std::min(end, chunk_end);
    if (Chunk* chunk = table_[address >> kChunkBits]; chunk != nullptr) {
      std::memset(chunk->states + place(address), 0, place(part_end - 1) - place(address) + 1);
    }
    address = part_end;
  }
}

}  // namespace heddle::collect
