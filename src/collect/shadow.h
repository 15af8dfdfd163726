// What is known about every 8-byte granule of the target's memory: a byte that says whose it is,
// and a 64-bit word besides. The bytes alone answer nearly every question, and eight times as many
// of them fit the cache; they lie apart from the words.
//
// The address space is cut into regions of 8 GB. Of a region that the program uses, both are arrays
// of reserved memory that the kernel fills with zeros where it is touched. All others share one
// array of states that is never written to. So finding a state is two loads, and asks nothing.
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
      return *reinterpret_cast<const std::uint8_t*>(regions_[address >> kRegionBits].states +
                                                    (address >> kGranuleBits));
    }
    // Of this granule, in the lowest byte, and the seven after it. Of those beyond the region: 0.
    std::uint64_t states(Address address) const {
      std::uint64_t states;
      std::memcpy(&states,
                  reinterpret_cast<const void*>(regions_[address >> kRegionBits].states +
                                                (address >> kGranuleBits)),
                  sizeof states);
      return states;
    }
    std::uint64_t& word(Address address) const {
      return *reinterpret_cast<std::uint64_t*>(regions_[address >> kRegionBits].words +
                                               (address & ~kInGranule));
    }

   private:
    friend class Shadow;
    struct Region {           // as what is added to an address
      std::uintptr_t states;  // … in granules
      std::uintptr_t words;   // … of the granule; 0: none
    };
    explicit View(Region* regions) : regions_(regions) {}
    Region* regions_;
  };
  View view() const { return View(regions_); }

  // Gives the granule a state and a word; false: there is no address space for its region. Or, if
  // it has them, another state.
  bool set(Address address, std::uint8_t state, std::uint64_t word);
  void set(Address address, std::uint8_t state) { *state_at(address) = state; }

  // Whether all granules from the one of `first` to the one of `last`, both covered, have this
  // state.
  bool all(Address first, Address last, std::uint8_t state) const;

  // Forgets the granules that lie in [address, address + size).
  void clear(Address address, std::uint64_t size);

 private:
  using Region = View::Region;
  static constexpr Address kInGranule = (Address{1} << kGranuleBits) - 1;
  static constexpr unsigned kRegionBits = 33;
  static constexpr std::size_t kRegions = std::size_t{1} << (kAddressBits - kRegionBits);
  static constexpr std::size_t kGranules = std::size_t{1} << (kRegionBits - kGranuleBits);
  static constexpr std::size_t kArray = kGranules + kStates;  // of states: none is read beyond it

  bool make_region(std::size_t number);
  std::uint8_t* state_at(Address address) const {
    return reinterpret_cast<std::uint8_t*>(regions_[address >> kRegionBits].states +
                                           (address >> kGranuleBits));
  }

  struct Arrays {
    std::uint8_t* states;
    std::uint64_t* words;
  };
  std::uint8_t* nothing_ = nullptr;  // the states of a region that nobody uses
  Region* regions_ = nullptr;
  std::vector<Arrays> arrays_;  // of the regions that are used
};

}  // namespace heddle::collect
