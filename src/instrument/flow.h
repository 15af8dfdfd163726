// Flow facts of one function: virtual registers, what values are computed from, and which branches
// a block is control dependent on (trace/catalog.h, "the flow level").
//
// Registers are the parameters, then every recorded read, call result and phi, in program order.
// Everything in between is arithmetic: sources(v) are the registers that v is computed from. What
// passes through a private stack slot (an array on the stack that nobody else can see) is not
// recorded; a read of it has the sources of everything that is ever stored there.
//
// Control dependence is Ferrante, Ottenstein and Warren's (TOPLAS 1987): block b depends on the
// branch of a if b post-dominates a successor of a, but not a itself. Calls that may throw have
// two successors, too; they are looked through: what depends on an invoke depends on what the
// invoke depends on. Otherwise every statement after a call would hang on the call.
#pragma once

#include "instrument/sharing.h"
#include "trace/catalog.h"

#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Function.h>

namespace heddle::instrument {

class Flow {
 public:
  Flow(llvm::Function& function, Sharing& sharing);

  // Makes a register for the result of `value`.
  Register define(const llvm::Value* value);
  Register register_of(const llvm::Value* value) const;
  std::uint32_t register_count() const { return next_; }

  // Sorted, without duplicates. All registers must have been defined before.
  Sources sources(const llvm::Value* value);
  Sources slot_sources(const llvm::Value* slot);

  std::uint32_t block_number(const llvm::BasicBlock* block) const {
    return block_numbers_.lookup(block);
  }
  const std::vector<std::uint32_t>& control_parents(const llvm::BasicBlock* block);

 private:
  using Visited = llvm::SmallPtrSet<const llvm::Value*, 16>;
  void collect(const llvm::Value* value, Visited& visited, Sources& out);
  void collect_slot(const llvm::Value* slot, Visited& visited, Sources& out);
  void find_control_parents();

  llvm::Function& function_;
  Sharing& sharing_;
  Register next_;
  llvm::DenseMap<const llvm::Value*, Register> registers_;
  llvm::DenseMap<const llvm::BasicBlock*, std::uint32_t> block_numbers_;
  std::vector<std::vector<std::uint32_t>> control_parents_;  // by block number
};

}  // namespace heddle::instrument
