// Addresses as linear forms: base + c1·v1 + c2·v2 + … + constant.
//
// Two accesses of a segment whose forms differ in the constant only need one recorded address: the
// other is derived (abi/layout.h). Code at the start of the pipeline computes the same index again
// for every access (`a[i]`, `a[i] + a[i - 1]`), so values are compared by what they compute, not
// by which instruction computes it.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>

namespace heddle::instrument {

struct LinearAddress {
  // Base first, then (value, coefficient, extension) for each term, in a fixed order.
  std::vector<std::uint64_t> key;
  std::int64_t constant{};
  const llvm::Value* base{};
  bool plain{};  // no terms: base plus constant
};

class Addresses {
 public:
  explicit Addresses(const llvm::DataLayout& layout) : layout_(layout) {}

  LinearAddress linear(const llvm::Value* address);

 private:
  // One representative for all values of the function that compute the same.
  const llvm::Value* representative(const llvm::Value* value, unsigned depth);

  const llvm::DataLayout& layout_;
  llvm::DenseMap<const llvm::Value*, const llvm::Value*> representatives_;
  std::map<std::vector<std::uint64_t>, const llvm::Value*> by_expression_;
};

}  // namespace heddle::instrument
