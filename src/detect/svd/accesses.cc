#include "detect/svd/accesses.h"

namespace heddle::svd {
namespace {

// Each of these so many times.
template <typename Code>
void copy(const Code* from, std::size_t cells, unsigned copies, Code* to) {
  for (std::size_t i = 0; i < cells * copies; ++i) to[i] = from[i / copies];
}
template <typename Code>
std::unique_ptr<Code[]> copied(const std::unique_ptr<Code[]>& from, std::size_t cells,
                               unsigned copies) {
  if (from == nullptr) return nullptr;
  auto to = std::make_unique<Code[]>(cells * copies);
  copy(from.get(), cells, copies, to.get());
  return to;
}

}  // namespace

Accesses::Short Accesses::make_short(std::size_t cells, PagePool& pool) {
  if (cells * sizeof(std::uint16_t) != PagePool::kBytes) return Short(new std::uint16_t[cells]());
  return Short(static_cast<std::uint16_t*>(pool.take()), GiveBackCodes{&pool});
}

Accesses::Accesses(std::size_t cells, bool scattered, PagePool& pool) : cells_(cells) {
  if (scattered) {
    long_ = std::make_unique<std::uint32_t[]>(cells);
    reach_ = 1u << kLongBits;
  } else {
    short_ = make_short(cells, pool);
  }
}

std::size_t Accesses::set_slowly(std::uint64_t cell, AccessRef access) {
  const std::size_t before = bytes();
  while (whole_ == nullptr && !use_base_for(access)) widen();
  if (whole_ != nullptr) {
    whole_[cell] = access;
  } else {
    put(cell, static_cast<std::uint32_t>(access - base_));
  }
  return bytes() - before;
}

// False: there is none, and no room for another.
bool Accesses::use_base_for(AccessRef access) {
  auto number = static_cast<std::uint32_t>(bases_.size());
  while (number > 0 && access - bases_[number - 1] >= reach_) --number;
  if (number == 0) {
    if (bases_.size() == (short_ != nullptr ? kShortBases : kLongBases)) return false;
    bases_.reserve(bases_.size() + 1);  // there are many planes, and most need but a few
    bases_.push_back(access);
    number = static_cast<std::uint32_t>(bases_.size());
  }
  base_number_ = number - 1;
  base_ = bases_[base_number_];
  return true;
}

void Accesses::widen() {
  if (short_ != nullptr) {
    long_ = std::make_unique<std::uint32_t[]>(cells_);
    for (std::size_t i = 0; i < cells_; ++i) {
      const std::uint32_t code = short_[i];
      long_[i] = code >> kShortBits << kLongBits | (code & ((1u << kShortBits) - 1));
    }
    short_ = nullptr;
    reach_ = 1u << kLongBits;
    return;
  }
  whole_ = std::make_unique<AccessRef[]>(cells_);
  for (std::size_t i = 0; i < cells_; ++i) whole_[i] = decoded(long_[i], kLongBits);
  long_ = nullptr;
  reach_ = 0;
}

Accesses Accesses::split(unsigned copies, PagePool& pool) const {
  Accesses out(0, true, pool);
  out.base_ = base_;
  out.reach_ = reach_;
  out.base_number_ = base_number_;
  out.cells_ = cells_ * copies;
  if (short_ != nullptr) {
    out.short_ = make_short(out.cells_, pool);
    copy(short_.get(), cells_, copies, out.short_.get());
  }
  out.long_ = copied(long_, cells_, copies);
  out.whole_ = copied(whole_, cells_, copies);
  out.bases_ = bases_;
  return out;
}

}  // namespace heddle::svd
