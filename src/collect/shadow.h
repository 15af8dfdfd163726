// What is known about every 8-byte granule of the target's memory: a byte that says whose it is,
// and a 64-bit word besides. The bytes alone answer nearly every question, and eight times as many
// of them fit the cache; they lie apart from the words.
//
// The address space is cut into regions of 8 GB. Of a region that the program uses, both are arrays
// of reserved memory that the kernel fills with zeros where it is touched. All others share one
// array of states that is never written to. So finding a state is two loads, and asks nothing. The
// table of regions has first where the states of each lie and then where its words do, so that one
// number is all that whoever looks has to keep at hand.
#pragma once

#include "trace/event.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace heddle::collect {

class Shadow {
 public:
  static constexpr unsigned kGranuleBits = 3;
  static constexpr unsigned kAddressBits = 47;  // user space
  static constexpr unsigned kStates = 8;        // that are read at once

  Shadow();
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // False: there was no address space for it, and nothing else may be called.
  bool made() const { return regions_ != nullptr; }

  static bool covers(Address address) { return address >> kAddressBits == 0; }

  // For reading what is known of the granules of addresses that are covered, quickly. A word is
  // there if the state of its granule is not 0.
  class View {
   public:
    std::uint8_t state(Address address) const {
      return *reinterpret_cast<const std::uint8_t*>(states_of(address) + (address >> kGranuleBits));
    }
    // Of this granule, in the lowest byte, and the seven after it. Of those beyond the region: 0.
    std::uint64_t states(Address address) const {
      return load(
          reinterpret_cast<const std::uint8_t*>(states_of(address) + (address >> kGranuleBits)));
    }
    std::uint64_t& word(Address address) const {
      return *reinterpret_cast<std::uint64_t*>(words_of(address) + (address & ~kInGranule));
    }
    // Shadow::set() for a region that is used; false: it is not.
    bool set(Address address, std::uint8_t state, std::uint64_t word) const {
      if (words_of(address) == 0) return false;
      *reinterpret_cast<std::uint8_t*>(states_of(address) + (address >> kGranuleBits)) = state;
      this->word(address) = word;
      return true;
    }
    // Whether all granules from the one of `first` to the one of `last`, both covered, have this
    // state.
    bool all(Address first, Address last, std::uint8_t state) const {
      const std::uint64_t granules = (last >> kGranuleBits) - (first >> kGranuleBits) + 1;
      if (granules > kStates || first >> kRegionBits != last >> kRegionBits) {
        return all_of_many(first, last, state);
      }
      const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * granules);
      return ((states(first) ^ state * kEach) & mask) == 0;
    }
    // The same, inlined, for some dozens of them.
    [[gnu::always_inline]] bool all_in_row(Address first, Address last, std::uint8_t state) const {
      if (first >> kRegionBits != last >> kRegionBits) return all_of_many(first, last, state);
      const std::uint64_t eight = state * kEach;
      const auto* at =
          reinterpret_cast<const std::uint8_t*>(states_of(first) + (first >> kGranuleBits));
      std::uint64_t left = (last >> kGranuleBits) - (first >> kGranuleBits) + 1;
      for (; left > kStates; left -= kStates, at += kStates) {
        if (load(at) != eight) return false;
      }
      return ((load(at) ^ eight) & ~std::uint64_t{0} >> (64 - 8 * left)) == 0;
    }
    // Whether they have this state, or 0.
    bool all_or_nothing(Address first, Address last, std::uint8_t state) const;

   private:
    friend class Shadow;
    explicit View(std::uintptr_t* regions) : regions_(regions) {}
    bool all_of_many(Address first, Address last, std::uint8_t state) const;
    static std::uint64_t load(const std::uint8_t* first) {
      std::uint64_t states;
      std::memcpy(&states, first, sizeof states);
      return states;
    }
    template <typename Others>
    bool none(Address first, Address last, Others others) const;

    // As what is added to an address, in granules; and of its granule, 0 if the region has none.
    std::uintptr_t& states_of(Address address) const { return regions_[address >> kRegionBits]; }
    std::uintptr_t& words_of(Address address) const {
      return regions_[kRegions + (address >> kRegionBits)];
    }

    std::uintptr_t* regions_;
  };
  View view() const { return View(regions_); }

  static constexpr std::uint64_t kEach = 0x0101010101010101;  // times a state: eight of them

  // Gives the granule a state and a word; false: there is no address space for its region. Or all
  // granules from the one of `first` to the one of `last`. Or, if it has them, another state.
  bool set(Address address, std::uint8_t state, std::uint64_t word);
  bool set_all(Address first, Address last, std::uint8_t state, std::uint64_t word);
  void set(Address address, std::uint8_t state) { *state_at(address) = state; }

  // Forgets the granules that lie in [address, address + size).
  void clear(Address address, std::uint64_t size);

 private:
  static constexpr Address kInGranule = (Address{1} << kGranuleBits) - 1;
  static constexpr unsigned kRegionBits = 33;
  static constexpr std::size_t kRegions = std::size_t{1} << (kAddressBits - kRegionBits);
  static constexpr std::size_t kGranules = std::size_t{1} << (kRegionBits - kGranuleBits);
  static constexpr std::size_t kArray = kGranules + kStates;  // of states: none is read beyond it

  bool make_region(std::size_t number);
  std::uint8_t* state_at(Address address) const {
    return reinterpret_cast<std::uint8_t*>(view().states_of(address) + (address >> kGranuleBits));
  }

  struct Arrays {
    std::uint8_t* states;
    std::uint64_t* words;
  };
  std::uint8_t* nothing_ = nullptr;  // the states of a region that nobody uses
  std::uintptr_t* regions_ = nullptr;
  std::vector<Arrays> arrays_;  // of the regions that are used
};

}  // namespace heddle::collect
