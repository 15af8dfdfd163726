#include "collect/shadow.h"

#include "base/check.h"

#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace heddle::collect {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargeClear = 16 * kPage;

// nullptr: not to be had.
template <typename T>
T* reserve(std::size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, count * sizeof(T), MADV_DONTDUMP);
  return static_cast<T*>(memory);
}

template <typename T>
void release(T* memory, std::size_t count) {
  if (memory != nullptr) munmap(static_cast<void*>(memory), count * sizeof(T));
}

}  // namespace

Shadow::Shadow()
    : states_(reserve<std::uint8_t>(kStates)), chunks_(reserve<std::uint64_t*>(kChunks)) {
  if (chunks_ == nullptr) release(std::exchange(states_, nullptr), kStates);
}

Shadow::~Shadow() {
  for (std::uint64_t* chunk : chunks_made_) release(chunk, kChunkWords);
  release(chunks_, kChunks);
  release(states_, kStates);
}

void Shadow::make_chunk(Address address) {
  auto* chunk = reserve<std::uint64_t>(kChunkWords);
  HEDDLE_CHECK(chunk != nullptr);
  chunks_made_.push_back(chunk);
  chunks_[address >> kChunkBits] = chunk;
}

bool Shadow::all(Address first, Address last, std::uint8_t state) const {
  const std::uint8_t* at = states_ + (first >> kGranuleBits);
  const std::uint8_t* const end = states_ + (last >> kGranuleBits) + 1;
  const std::uint64_t eight = state * 0x0101010101010101u;
  for (; end - at >= 8; at += 8) {
    std::uint64_t found;
    std::memcpy(&found, at, sizeof found);
    if (found != eight) return false;
  }
  for (; at < end; ++at) {
    if (*at != state) return false;
  }
  return true;
}

void Shadow::clear(Address address, std::uint64_t size) {
  if (!covers(address) || size == 0 || size > (Address{1} << kAddressBits) - address) return;
  std::uint8_t* first = states_ + (address >> kGranuleBits);
  std::uint8_t* const end = states_ + ((address + size - 1) >> kGranuleBits) + 1;
  // Of a large block, whole pages are given back to the kernel: most of them may never have been
  // touched, and should not be now.
  if (static_cast<std::size_t>(end - first) >= kLargeClear) {
    const auto page = [](std::uint8_t* at) { return reinterpret_cast<std::uintptr_t>(at) % kPage; };
    std::uint8_t* const pages = first + (kPage - page(first)) % kPage;
    std::uint8_t* const pages_end = end - page(end);
    std::memset(first, 0, static_cast<std::size_t>(pages - first));
    madvise(pages, static_cast<std::size_t>(pages_end - pages), MADV_DONTNEED);
    first = pages_end;
  }
  std::memset(first, 0, static_cast<std::size_t>(end - first));
}

}  // namespace heddle::collect
