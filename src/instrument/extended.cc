#include "instrument/extended.h"

#include <algorithm>
#include <functional>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>

namespace heddle::instrument {
namespace {

using llvm::BasicBlock;

constexpr unsigned kMostWords = 48;  // of a record that goes on
constexpr std::size_t kMostItems = 28;
constexpr std::size_t kMostWays = 4;  // into a block

class Extender {
 public:
  Extender(FunctionPlan& plan, Unit& unit) : unit_(unit) {
    for (BlockPlan& block : plan.blocks) plans_[block.block] = &block;
    for (BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(plan.function)) {
      order_[block] = static_cast<unsigned>(blocks_.size());
      blocks_.push_back(block);
    }
  }

  void run() {
    for (BasicBlock* block : blocks_) extend(*block);
    // What follows is known before what it follows.
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      const BlockPlan* plan = plans_.lookup(blocks_[i]);
      if (plan == nullptr || plan->steps.empty()) continue;
      const Step& step = plan->steps.front();
      for (Step* before : extended_by_.lookup(blocks_[i])) {
        // A block with more than one step ends with another record than it goes on with.
        const unsigned behind = plan->steps.size() == 1 ? step.reserve : 0;
        before->reserve = std::max(before->reserve, step.words + behind);
      }
    }
  }

  bool extends(const BasicBlock* block) const { return extended_by_.contains(block); }

 private:
  Step* record_before(const BasicBlock& block, const BasicBlock& before) const;
  void extend(BasicBlock& block);

  Unit& unit_;
  llvm::DenseMap<const BasicBlock*, BlockPlan*> plans_;
  llvm::DenseMap<const BasicBlock*, unsigned> order_;
  std::vector<BasicBlock*> blocks_;  // in reverse post-order
  llvm::DenseMap<const BasicBlock*, std::vector<Step*>>
      extended_by_;  // the records it goes on with
};

bool is_simple(const Step& step) {
  return step.kind == Step::Kind::kSegment &&
         std::all_of(step.items.begin(), step.items.end(), std::mem_fn(&PlannedItem::is_simple));
}

// The record that has just ended when `block` is entered from `before`; nullptr: nobody knows.
Step* Extender::record_before(const BasicBlock& block, const BasicBlock& before) const {
  const BasicBlock* at = &before;
  for (unsigned limit = order_.lookup(&block); at != nullptr; at = at->getUniquePredecessor()) {
    const auto number = order_.find(at);
    if (number == order_.end() || number->second >= limit) return nullptr;
    limit = number->second;
    BlockPlan* plan = plans_.lookup(at);
    if (plan == nullptr) return nullptr;
    if (plan->steps.empty()) continue;
    Step& last = plan->steps.back();
    return is_simple(last) && last.ways.empty() ? &last : nullptr;
  }
  return nullptr;
}

void Extender::extend(BasicBlock& block) {
  BlockPlan* plan = plans_.lookup(&block);
  if (plan == nullptr || plan->steps.empty() || !is_simple(plan->steps.front())) return;
  if (block.isEntryBlock() || block.isEHPad()) return;
  Step& step = plan->steps.front();
  std::vector<std::pair<BasicBlock*, Step*>> ways;
  for (BasicBlock* before : llvm::predecessors(&block)) {
    if (std::any_of(ways.begin(), ways.end(), [&](const auto& way) { return way.first == before; }))
      continue;
    Step* record = record_before(block, *before);
    if (record == nullptr || ways.size() == kMostWays) return;
    ways.emplace_back(before, record);
  }
  if (ways.empty()) return;
  const unsigned words = ways[0].second->before + ways[0].second->words;
  if (words + step.words > kMostWords) return;
  for (const auto& [before, record] : ways) {
    if (record->before + record->words != words) return;
    if (record->items_before + record->items.size() + step.items.size() > kMostItems) return;
  }
  step.goes_on = true;
  step.before = words;
  const std::vector<JoinedPart> own = step.parts;
  for (const auto& [before, record] : ways) {
    std::vector<JoinedPart> parts = record->parts;
    parts.insert(parts.end(), own.begin(), own.end());
    const std::uint32_t slot = unit_.add_joined_slot(words + step.words, parts);
    step.ways.push_back({before, slot});
    step.items_before = std::max(step.items_before, record->items_before + record->items.size());
    extended_by_[&block].push_back(record);
    if (ways.size() == 1) step.parts = std::move(parts);
  }
  // By one way only: it can go on in turn.
  if (step.ways.size() == 1) {
    step.slot = step.ways[0].slot;
    step.ways.clear();
  }
}

}  // namespace

void extend_records(FunctionPlan& plan, std::vector<CopiedLoop>& loops, Unit& unit) {
  if (plan.function->isPresplitCoroutine()) return;
  Extender extender(plan, unit);
  extender.run();
  for (CopiedLoop& loop : loops) {
    for (const BasicBlock* block : loop.blocks) {
      if (extender.extends(block)) --loop.words_per_round;  // a header
    }
  }
}

}  // namespace heddle::instrument
