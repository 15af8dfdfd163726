#include "collect/shadow.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace heddle::collect {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargeClear = 16 * kPage;

// nullptr: not to be had.
template <typename T>
T* reserve(std::size_t count, int protection = PROT_READ | PROT_WRITE) {
  void* memory = mmap(nullptr, count * sizeof(T), protection,
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

Shadow::Shadow() : nothing_(reserve<std::uint8_t>(kArray, PROT_READ)) {
  if (nothing_ == nullptr) return;
  regions_ = reserve<std::uintptr_t>(2 * kRegions);
  if (regions_ == nullptr) return;
  for (std::size_t i = 0; i < kRegions; ++i) {
    regions_[i] = reinterpret_cast<std::uintptr_t>(nothing_) - i * kGranules;
  }
}

Shadow::~Shadow() {
  for (const Arrays& arrays : arrays_) {
    release(arrays.states, kArray);
    release(arrays.words, kGranules);
  }
  release(regions_, 2 * kRegions);
  release(nothing_, kArray);
}

bool Shadow::make_region(std::size_t number) {
  const Arrays arrays{reserve<std::uint8_t>(kArray), reserve<std::uint64_t>(kGranules)};
  if (arrays.states == nullptr || arrays.words == nullptr) {
    release(arrays.states, kArray);
    release(arrays.words, kGranules);
    return false;
  }
  arrays_.push_back(arrays);
  regions_[number] = reinterpret_cast<std::uintptr_t>(arrays.states) - number * kGranules;
  regions_[kRegions + number] =
      reinterpret_cast<std::uintptr_t>(arrays.words) - (Address{number} << kRegionBits);
  return true;
}

bool Shadow::set(Address address, std::uint8_t state, std::uint64_t word) {
  return view().set(address, state, word) ||
         (make_region(address >> kRegionBits) && view().set(address, state, word));
}

bool Shadow::set_all(Address first, Address last, std::uint8_t state, std::uint64_t word) {
  while (true) {
    const Address region_last = first | ((Address{1} << kRegionBits) - 1);
    const Address end = std::min(last, region_last);
    const std::size_t granules = (end >> kGranuleBits) - (first >> kGranuleBits) + 1;
    if (!set(first, state, word)) return false;
    std::fill_n(state_at(first), granules, state);
    std::fill_n(&view().word(first), granules, word);
    if (last <= region_last) return true;
    first = region_last + 1;
  }
}

// None of the granules is among the others, which `others` picks out of eight states: it leaves 0
// of each of the rest. The last eight of a row are looked at together, also where some of them were
// looked at before.
template <typename Others>
bool Shadow::View::none(Address first, Address last, Others others) const {
  while (true) {
    const Address region_last = first | ((Address{1} << kRegionBits) - 1);
    const Address end = std::min(last, region_last);
    const std::uint64_t granules = (end >> kGranuleBits) - (first >> kGranuleBits) + 1;
    if (granules < kStates) {
      const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * granules);
      if ((others(states(first)) & mask) != 0) return false;
    } else {
      std::uint64_t found = 0;
      for (std::uint64_t i = 0; i < granules - kStates && found == 0; i += kStates) {
        found = others(states(first + (i << kGranuleBits)));
      }
      found |= others(states(first + ((granules - kStates) << kGranuleBits)));
      if (found != 0) return false;
    }
    if (last <= region_last) return true;
    first = region_last + 1;
  }
}

bool Shadow::View::all_of_many(Address first, Address last, std::uint8_t state) const {
  const std::uint64_t eight = state * kEach;
  return none(first, last, [&](std::uint64_t states) { return states ^ eight; });
}

bool Shadow::View::all_or_nothing(Address first, Address last, std::uint8_t state) const {
  constexpr std::uint64_t kHighest = 0x80 * kEach;
  const std::uint64_t eight = state * kEach;
  return none(first, last, [&](std::uint64_t states) {
    const std::uint64_t not_zero = (((states & ~kHighest) + ~kHighest) | states) & kHighest;
    return (states ^ eight) & (not_zero >> 7) * 0xff;
  });
}

void Shadow::clear(Address address, std::uint64_t size) {
  if (!covers(address) || size == 0 || size > (Address{1} << kAddressBits) - address) return;
  const Address last = address + size - 1;
  while (true) {
    const Address region_last = address | ((Address{1} << kRegionBits) - 1);
    if (view().words_of(address) != 0) {
      std::uint8_t* first = state_at(address);
      std::uint8_t* const end = state_at(std::min(last, region_last)) + 1;
      // Of a large block, whole pages are given back to the kernel: most of them may never have
      // been touched, and should not be now.
      if (static_cast<std::size_t>(end - first) >= kLargeClear) {
        const auto in_page = [](std::uint8_t* at) {
          return reinterpret_cast<std::uintptr_t>(at) % kPage;
        };
        std::uint8_t* const pages = first + (kPage - in_page(first)) % kPage;
        std::uint8_t* const pages_end = end - in_page(end);
        std::memset(first, 0, static_cast<std::size_t>(pages - first));
        madvise(pages, static_cast<std::size_t>(pages_end - pages), MADV_DONTNEED);
        first = pages_end;
      }
      std::memset(first, 0, static_cast<std::size_t>(end - first));
    }
    if (last <= region_last) return;
    address = region_last + 1;
  }
}

}  // namespace heddle::collect
