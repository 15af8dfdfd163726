#include "detect/avio/pages.h"

#include "base/no_memory.h"

#include <algorithm>
#include <array>

#include <sys/mman.h>
#include <unistd.h>

namespace heddle::avio {
namespace {

constexpr std::uint8_t kAllBytes = 0xff;
constexpr std::size_t kPageSize = std::size_t{1} << kPageBits;

template <typename T>
T* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) no_memory();
  return static_cast<T*>(memory);
}

// Of kBlock bytes, at a multiple of kBlockAlignment.
std::byte* reserve_block() {
  constexpr std::size_t kEnough = kBlock + kBlockAlignment;
  auto* const memory = reserve<std::byte>(kEnough);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory) % kBlockAlignment;
  if (before != 0) munmap(memory, before);
  munmap(memory + before + kBlock, kEnough - before - kBlock);
  return memory + before;
}

constexpr std::size_t kTableBytes = sizeof(std::byte*) << (Pages::kAddressBits - kChunkBits);

// Where the states of the bytes [from, to) of a chunk are: pieces of its block.
template <typename Visit>
void visit_pieces(std::size_t from, std::size_t to, Visit visit) {
  struct Array {
    std::size_t start, times;
  };
  constexpr std::array<Array, 3> kStamps{{{0, 1}, {kSecond, 1}, {kBytes, sizeof(Stamp)}}};
  for (const Array& array : kStamps) {
    const std::size_t start = array.start + from * array.times;
    const std::size_t size = (to - from) * array.times;
    for (std::size_t part = 0; part < kArrays; ++part) visit(part * kArray + start, size);
  }
}

}  // namespace

Pages::Pages(Histories& histories)
    : histories_(histories), table_(reserve<std::byte*>(kTableBytes)) {}

Pages::~Pages() {
  for (const auto& [number, chunk] : chunks_) munmap(chunk, kBlock);
  munmap(static_cast<void*>(table_), kTableBytes);
}

std::byte* Pages::find_chunk(std::uint64_t number) const {
  if (number >> (kAddressBits - kChunkBits) == 0) return table_[number];
  const auto at = far_.find(number);
  return at != far_.end() ? at->second : nullptr;
}

std::byte* Pages::make_chunk(std::uint64_t number) {
  std::byte* const chunk = reserve_block();
  (number >> (kAddressBits - kChunkBits) == 0 ? table_[number] : far_[number]) = chunk;
  chunks_.emplace_back(number, chunk);
  return chunk;
}

void Pages::split(Location cell) {
  const Location second = cell.second_half();
  cell.last() |= kHalf;
  second.last() = cell.last();
  if ((cell.last() & kHasHistory) != 0) histories_.copy(cell, second);
}

Location Pages::by_bytes(Location half) {
  const Stamp last = half.last();
  const Location bytes = half.bytes();
  if (last == kByBytes) return bytes;
  Location byte = bytes;
  for (int n = 0; n < 4; ++n, byte = byte.next()) {
    byte.last() = last & ~kHalf;
    if ((last & kHasHistory) != 0) histories_.copy(half, byte);
  }
  if ((last & kHasHistory) != 0) histories_.drop(half);
  half.last() = kByBytes;
  return bytes;
}

// Forgets a location that is not kept by bytes.
void Pages::clear(Location location, Stamp untouched) {
  if ((location.last() & kHasHistory) != 0) histories_.drop(location);
  location.last() = untouched;
}

void Pages::forget_half(Location half, std::uint8_t mask) {
  if (is_untouched(half.last()) || mask == 0) return;
  if (half.last() != kByBytes && mask == 0xf) return clear(half, kHalf);
  Location byte = by_bytes(half);
  bool empty = true;
  for (int n = 0; n < 4; ++n, byte = byte.next()) {
    if ((mask >> n & 1) != 0) clear(byte, 0);
    empty &= byte.last() == 0;
  }
  if (empty) half.last() = kHalf;
}

void Pages::forget_cell(Location cell, std::uint8_t mask) {
  if (cell.last() == 0) return;
  if ((cell.last() & kHalf) == 0) {
    if (mask == kAllBytes) return clear(cell, 0);
    split(cell);
  }
  const Location second = cell.second_half();
  forget_half(cell, mask & 0xf);
  forget_half(second, mask >> 4);
  if (cell.last() == kHalf && second.last() == kHalf) cell.last() = second.last() = 0;
}

// The bytes [from, to) of a page.
void Pages::forget_in_page(std::byte* chunk, std::size_t from, std::size_t to) {
  for (std::size_t at = from; at < to;) {
    const std::size_t cell = at & ~std::size_t{7};
    const std::size_t end = std::min(to, cell + 8);
    const auto mask =
        static_cast<std::uint8_t>((0xffu << (at - cell)) & (0xffu >> (cell + 8 - end)));
    forget_cell(Location::of(chunk, cell), mask);
    at = end;
  }
}

void Pages::forget_in_chunk(std::byte* chunk, std::size_t from, std::size_t to) {
  constexpr std::size_t kWorthACall = 16 * kPageSize;
  bool any = false;
  for (std::size_t at = from; at < to;) {
    const std::size_t page = at & ~(kPageSize - 1);
    const std::size_t end = std::min(to, page + kPageSize);
    std::byte& used = chunk[kUsed + page / kPageSize];
    if (used != std::byte{}) {
      any = true;
      forget_in_page(chunk, at, end);
      if (end - at == kPageSize) used = std::byte{};
    }
    at = end;
  }
  const std::size_t first = (from + kPageSize - 1) & ~(kPageSize - 1);
  const std::size_t last = to & ~(kPageSize - 1);
  if (!any || first >= last || last - first < kWorthACall) return;
  visit_pieces(first, last, [&](std::size_t start, std::size_t size) {
    madvise(chunk + start, size, MADV_DONTNEED);
  });
}

void Pages::forget(Address first, Address last) {
  const auto in_chunk = [&](std::uint64_t number, std::byte* chunk) {
    const Address base = number << kChunkBits;
    const Address end = base + kInChunk;
    forget_in_chunk(chunk, std::max(first, base) - base, std::min(last, end) - base + 1);
  };
  const std::uint64_t first_chunk = first >> kChunkBits;
  const std::uint64_t last_chunk = last >> kChunkBits;
  if (last_chunk - first_chunk < chunks_.size()) {
    for (std::uint64_t number = first_chunk; number <= last_chunk; ++number) {
      if (std::byte* const chunk = find_chunk(number)) in_chunk(number, chunk);
    }
    return;
  }
  for (const auto& [number, chunk] : chunks_) {
    if (number >= first_chunk && number <= last_chunk) in_chunk(number, chunk);
  }
}

void Pages::forget_everything() {
  for (const auto& [number, chunk] : chunks_) {
    if (number >> (kAddressBits - kChunkBits) == 0) table_[number] = nullptr;
    munmap(chunk, kBlock);
  }
  far_.clear();
  chunks_.clear();
}

std::size_t Pages::shared() const {
  std::size_t count = 0;
  const auto add = [&](Location location) {
    count += (location.last() & kHasHistory) != 0 ? 1 : 0;
  };
  const auto add_half = [&](Location half) {
    if (half.last() != kByBytes) return add(half);
    Location byte = half.bytes();
    for (int n = 0; n < 4; ++n, byte = byte.next()) add(byte);
  };
  for (const auto& [number, chunk] : chunks_) {
    for (std::size_t at = 0; at < kSecond; at += sizeof(Stamp)) {
      if (chunk[kUsed + at / kPageSize] == std::byte{}) {
        at += kPageSize - sizeof(Stamp);
        continue;
      }
      const Location cell = Location::of(chunk, at);
      if ((cell.last() & kHalf) == 0) {
        add(cell);
      } else {
        add_half(cell);
        add_half(cell.second_half());
      }
    }
  }
  return count;
}

std::size_t Pages::bytes() const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(kBlock / page);
  std::size_t count = 0;
  for (const auto& [number, chunk] : chunks_) {
    if (mincore(chunk, kBlock, resident.data()) != 0) continue;
    for (const unsigned char one : resident) count += one & 1;
  }
  return count * page;
}

}  // namespace heddle::avio
