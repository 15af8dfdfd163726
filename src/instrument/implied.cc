#include "instrument/implied.h"

#include <optional>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>

namespace heddle::instrument {
namespace {

class Implied {
 public:
  Implied(FunctionPlan& plan, Unit& unit) : plan_(plan), unit_(unit) {
    for (BlockPlan& block : plan.blocks) plans_[block.block] = &block;
  }

  void leave_out();

 private:
  std::optional<std::uint32_t> first_slot(const llvm::BasicBlock* block) const;
  std::vector<std::uint32_t> slots_after(const llvm::BasicBlock& block) const;

  FunctionPlan& plan_;
  Unit& unit_;
  llvm::DenseMap<const llvm::BasicBlock*, BlockPlan*> plans_;
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> implied_;  // with those before it
};

// The slot of the block's first segment, if the block records nothing before it.
std::optional<std::uint32_t> Implied::first_slot(const llvm::BasicBlock* block) const {
  const std::vector<Step>& steps = plans_.lookup(block)->steps;
  if (steps.empty()) return std::nullopt;
  const Step& step = steps.front();
  if (step.kind != Step::Kind::kSegment && step.kind != Step::Kind::kFlowSegment)
    return std::nullopt;
  if (unit_.segment_of(step.slot).index != 0) return std::nullopt;
  return step.slot;
}

// The slots of the segments that come right after the block, if none of them can come after
// another; else none.
std::vector<std::uint32_t> Implied::slots_after(const llvm::BasicBlock& block) const {
  std::vector<std::uint32_t> slots;
  for (const llvm::BasicBlock* next : llvm::successors(&block)) {
    if (next->getUniquePredecessor() != &block) return {};
    const std::optional<std::uint32_t> slot = first_slot(next);
    if (!slot.has_value()) return {};
    slots.push_back(*slot);
  }
  return slots;
}

void Implied::leave_out() {
  // In this order a block comes after its only predecessor.
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(plan_.function)) {
    const std::vector<Step>& steps = plans_.lookup(block)->steps;
    if (steps.size() != 1 || steps[0].kind != Step::Kind::kFlowSegment || block->isEntryBlock())
      continue;
    const unsigned count = 1 + implied_.lookup(block->getUniquePredecessor());
    if (count > HEDDLE_MOST_IMPLIED) continue;
    const std::vector<std::uint32_t> slots = slots_after(*block);
    if (!slots.empty() && unit_.imply(slots, steps[0].slot)) implied_[block] = count;
  }
  // Only now: until then they may themselves be what comes after another.
  for (const auto& [block, count] : implied_) plans_[block]->steps.clear();
}

}  // namespace

void leave_out_implied(FunctionPlan& plan, Unit& unit) {
  Implied(plan, unit).leave_out();
}

}  // namespace heddle::instrument
