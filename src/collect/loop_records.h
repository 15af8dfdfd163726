// The record of a plain loop into its accesses (abi/abi.h, "loops").
//
// One record may stand for billions of accesses, so they are made in pieces: begin() takes what the
// record says, expand() makes as many as the caller has room for and goes on where it stopped. The
// words are copied at the start, because the target may write to the ring at any time.
//
// Nothing that the record says is trusted: more rounds than a loop can have, or a way that no
// memory is large enough for, are damage. A loop that never ended (its rounds are written as their
// complement) gives the accesses up to its fault, if the record knows it, and else none.
#pragma once

#include "collect/units.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::collect {

class LoopExpansion {
 public:
  // `record` is the header and all words, the additional one of a paused record among them.
  // False: what it says cannot be.
  bool begin(const Unit& unit, const CompiledSlot& slot, std::span<const std::uint64_t> record);

  // There is more to come.
  bool under_way() const { return under_way_; }

  // Calls `access(const CommonItem&, Address)` for about `most` accesses, in order; the last round
  // that is begun is finished.
  template <typename Access>
  void expand(std::uint64_t most, Access access) {
    std::uint64_t made = 0;
    for (; round_ < whole_rounds_; ++round_, made += moving_.size()) {
      if (made >= most) return;
      for (Moving& item : moving_) {
        access(*item.item, item.address);
        item.address += item.step;
      }
    }
    for (std::uint32_t i = 0; i < rest_; ++i) access(*moving_[i].item, moving_[i].address);
    under_way_ = false;
  }

 private:
  struct Moving {
    const CommonItem* item;
    Address address;
    std::uint64_t step;
  };

  bool believable(std::uint64_t rounds) const;
  void cut_at(std::uint64_t fault);

  std::vector<Moving> moving_;
  bool under_way_ = false;
  std::uint64_t round_ = 0;
  std::uint64_t whole_rounds_ = 0;
  std::uint32_t rest_ = 0;  // items of the round after the last whole one
};

}  // namespace heddle::collect
