#include "instrument/loops.h"

#include "abi/abi.h"

#include <algorithm>
#include <optional>

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace heddle::instrument {
namespace {

using llvm::BasicBlock;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

constexpr unsigned kMostWords = 64;

// The accesses of a round, in order, and where its first block's end.
struct Round {
  std::vector<const PlannedItem*> items;
  unsigned in_header{};
  unsigned words{};                  // that the instrumented loop writes
  std::vector<std::uint32_t> parts;  // slots of segments
  bool whole = true;                 // these are all there are

  heddle_loop_kind kind() const {
    return whole && !parts.empty() ? HEDDLE_LOOP_WHOLE : HEDDLE_LOOP_ACCESSES;
  }
};

bool may_trap(const Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem: {
      const auto* divisor = dyn_cast<llvm::ConstantInt>(instruction.getOperand(1));
      return divisor == nullptr || divisor->isZero() || divisor->isMinusOne();
    }
    default:
      return false;
  }
}

// Whether a plain copy of the instruction does all that it does, and leaves the loop going on.
bool is_straight(const Instruction& instruction, const llvm::TargetLibraryInfo& library,
                 Sharing& sharing) {
  if (const auto* load = dyn_cast<llvm::LoadInst>(&instruction)) return load->isSimple();
  if (const auto* store = dyn_cast<llvm::StoreInst>(&instruction)) return store->isSimple();
  if (const auto* call = dyn_cast<llvm::CallBase>(&instruction)) {
    if (call->isInlineAsm() || call->isTerminator() || call->isConvergent() ||
        call->cannotDuplicate() || call_kind(*call, library, sharing) != CallKind::kNone) {
      return false;
    }
    const auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(call);
    if (intrinsic == nullptr) return call->doesNotThrow();  // sin and kin
    return intrinsic->doesNotAccessMemory() ||
           (intrinsic->isAssumeLikeIntrinsic() &&
            intrinsic->getIntrinsicID() != llvm::Intrinsic::experimental_noalias_scope_decl);
  }
  return !instruction.mayReadOrWriteMemory() && !instruction.mayThrow() && !may_trap(instruction) &&
         !isa<llvm::AllocaInst>(instruction) && !instruction.getType()->isTokenTy();
}

bool is_plain(const Access& access) {
  return access.order == MemoryOrder::kPlain && !access.always_a_point && !access.has_outcome &&
         access.length == nullptr && access.address != nullptr &&
         (isa<llvm::LoadInst>(access.instruction) || isa<llvm::StoreInst>(access.instruction)) &&
         (access.kind == EventKind::kRead || access.kind == EventKind::kWrite);
}

class LoopCopier {
 public:
  LoopCopier(llvm::Function& function, const FunctionPlan& plan, Unit& unit,
             const llvm::TargetLibraryInfo& library, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        unit_(unit),
        library_(library),
        tree_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        analyses_(analyses) {
    for (const BlockPlan& block : plan.blocks) plans_[block.block] = &block;
  }

  std::vector<CopiedLoop> run();

 private:
  // What computes, or reads, the same in every round, and its twin at the loop's entry; or the
  // loop's test, and its twin before the branch.
  struct Hoisted {
    Instruction* original;
    Instruction* twin;
    std::vector<llvm::Use*> uses;  // within the loop
  };

  bool has_shape(const Loop& loop);
  std::optional<Round> round_of(const Loop& loop) const;
  void make_entry(Loop& loop);
  bool stays_the_same(const Loop& loop, const llvm::LoadInst& load);
  void hoist(Loop& loop);
  void turn_test(Loop& loop);
  void put_back(const Loop& loop);
  std::optional<LoopLayout> describe(Loop& loop, const Round& round);
  const SCEV* extended(Value* index, llvm::Type* type);
  const SCEV* address_of(const Access& access, const Loop& loop);
  struct Located {
    const SCEV* first;
    bool gathered;
  };
  bool locate(const Located& item, std::span<const Located> earlier, LayoutItem& out);
  void add_slots(LoopLayout layout);
  void copy(Loop& loop, heddle_loop_kind kind);
  std::optional<CopiedLoop> try_loop(Loop& loop);

  llvm::Function& function_;
  Unit& unit_;
  const llvm::TargetLibraryInfo& library_;
  llvm::DominatorTree& tree_;
  llvm::LoopInfo& loops_;
  llvm::FunctionAnalysisManager& analyses_;
  llvm::ScalarEvolution* scev_{};
  llvm::AAResults* aliases_{};
  Sharing sharing_;
  llvm::DenseMap<const BasicBlock*, const BlockPlan*> plans_;

  // Of the loop at hand.
  BasicBlock* choose_{};
  BasicBlock* record_{};
  std::vector<Hoisted> hoisted_;
  const SCEV* rounds_{};
  std::vector<const SCEV*> words_;
  std::vector<Instruction*> gathered_;  // the loop's own
  CopiedLoop out_;
};

bool LoopCopier::has_shape(const Loop& loop) {
  if (!loop.isInnermost() || loop.getNumBlocks() > 2) return false;
  const BasicBlock* header = loop.getHeader();
  const BasicBlock* exiting = loop.getExitingBlock();
  const BasicBlock* latch = loop.getLoopLatch();
  const BasicBlock* exit = loop.getExitBlock();
  if (exiting != header || latch == nullptr || exit == nullptr || exit->isEHPad() ||
      header->isEHPad() || header->hasAddressTaken() ||
      !isa<llvm::BranchInst>(exiting->getTerminator()) ||
      !isa<llvm::BranchInst>(latch->getTerminator())) {
    return false;
  }
  for (const BasicBlock* before : llvm::predecessors(header)) {
    const Instruction* jump = before->getTerminator();
    if (isa<llvm::IndirectBrInst>(jump) || isa<llvm::CallBrInst>(jump)) return false;
  }
  for (const BasicBlock* block : loop.blocks()) {
    for (const Instruction& instruction : *block) {
      if (!isa<llvm::PHINode>(instruction) && !instruction.isTerminator() &&
          !is_straight(instruction, library_, sharing_)) {
        return false;
      }
    }
  }
  return true;
}

std::optional<Round> LoopCopier::round_of(const Loop& loop) const {
  Round round;
  const BasicBlock* header = loop.getHeader();
  const auto add = [&](const BasicBlock* block) {
    for (const Step& step : plans_.lookup(block)->steps) {
      if (step.kind == Step::Kind::kFlowSegment) {
        round.whole = false;
        continue;
      }
      if (step.kind != Step::Kind::kSegment) return false;
      round.words += 1 + step.words;
      round.parts.push_back(step.slot);
      for (const PlannedItem& item : step.items) {
        if (!is_plain(item.access)) return false;
        round.items.push_back(&item);
      }
    }
    return true;
  };
  if (!add(header)) return std::nullopt;
  round.in_header = static_cast<unsigned>(round.items.size());
  if (loop.getLoopLatch() != header && !add(loop.getLoopLatch())) return std::nullopt;
  return round;
}

// Two blocks before the loop: the first is for what its test needs, the second for what may be
// computed only if the body will run. No instruction moves, because the plan refers to them.
void LoopCopier::make_entry(Loop& loop) {
  BasicBlock* header = loop.getHeader();
  choose_ = BasicBlock::Create(function_.getContext(), "heddle.choose", &function_, header);
  record_ = BasicBlock::Create(function_.getContext(), "heddle.record", &function_, header);
  llvm::BranchInst::Create(record_, choose_);
  llvm::BranchInst::Create(header, record_);
  for (llvm::PHINode& phi : header->phis()) {
    auto* first = llvm::PHINode::Create(phi.getType(), 2, "", choose_->begin());
    for (unsigned i = phi.getNumIncomingValues(); i-- > 0;) {
      if (loop.contains(phi.getIncomingBlock(i))) continue;
      first->addIncoming(phi.getIncomingValue(i), phi.getIncomingBlock(i));
      phi.removeIncomingValue(i, /*DeletePHIIfEmpty=*/false);
    }
    Value* only = first->getNumIncomingValues() == 1 ? first->getIncomingValue(0) : nullptr;
    phi.addIncoming(only != nullptr ? only : first, record_);
    if (only != nullptr) first->eraseFromParent();
  }
  const llvm::SmallVector<BasicBlock*, 4> before(llvm::predecessors(header));
  for (BasicBlock* block : before) {
    if (block == record_ || loop.contains(block)) continue;
    block->getTerminator()->replaceSuccessorWith(header, choose_);
  }
  tree_.addNewBlock(choose_, tree_.getNode(header)->getIDom()->getBlock());
  tree_.addNewBlock(record_, choose_);
  tree_.changeImmediateDominator(header, record_);
  if (Loop* outer = loop.getParentLoop()) {
    outer->addBasicBlockToLoop(choose_, loops_);
    outer->addBasicBlockToLoop(record_, loops_);
  }
}

bool LoopCopier::stays_the_same(const Loop& loop, const llvm::LoadInst& load) {
  const llvm::MemoryLocation place = llvm::MemoryLocation::get(&load);
  for (const BasicBlock* block : loop.blocks()) {
    for (const Instruction& instruction : *block) {
      if (instruction.mayWriteToMemory() &&
          llvm::isModSet(aliases_->getModRefInfo(&instruction, place))) {
        return false;
      }
    }
  }
  return true;
}

// Until put_back, the loop uses the twins: so scalar evolution sees what does not change, and so
// does the copy. The header's instructions run at least once when the loop is entered; the body's
// if the plain loop is.
void LoopCopier::hoist(Loop& loop) {
  for (BasicBlock* block : loop.blocks()) {
    Instruction* place = (block == loop.getHeader() ? choose_ : record_)->getTerminator();
    for (Instruction& instruction : *block) {
      if (isa<llvm::PHINode>(instruction) || isa<llvm::CallBase>(instruction) ||
          isa<llvm::StoreInst>(instruction) || instruction.isTerminator()) {
        continue;
      }
      if (!loop.hasLoopInvariantOperands(&instruction)) continue;
      const auto* load = dyn_cast<llvm::LoadInst>(&instruction);
      if (load != nullptr && !stays_the_same(loop, *load)) continue;
      Hoisted entry{&instruction, instruction.clone(), {}};
      entry.twin->insertBefore(place);
      for (llvm::Use& use : instruction.uses()) {
        if (loop.contains(llvm::cast<Instruction>(use.getUser()))) entry.uses.push_back(&use);
      }
      scev_->forgetValue(&instruction);
      for (llvm::Use* use : entry.uses) use->set(entry.twin);
      hoisted_.push_back(std::move(entry));
    }
  }
  turn_test(loop);
  scev_->forgetLoop(&loop);
}

// "not equal" of the standard library's iterators is the negation of a comparison, which scalar
// evolution does not look through.
void LoopCopier::turn_test(Loop& loop) {
  auto* branch = llvm::cast<llvm::BranchInst>(loop.getHeader()->getTerminator());
  Value* compared = nullptr;
  if (!llvm::PatternMatch::match(
          branch->getCondition(),
          llvm::PatternMatch::m_Not(llvm::PatternMatch::m_Value(compared)))) {
    return;
  }
  auto* comparison = dyn_cast<llvm::ICmpInst>(compared);
  if (comparison == nullptr) return;
  auto* turned = llvm::ICmpInst::Create(Instruction::ICmp, comparison->getInversePredicate(),
                                        comparison->getOperand(0), comparison->getOperand(1), "",
                                        branch->getIterator());
  hoisted_.push_back(
      {llvm::cast<Instruction>(branch->getCondition()), turned, {&branch->getOperandUse(0)}});
  branch->setCondition(turned);
}

void LoopCopier::put_back(const Loop& loop) {
  for (Hoisted& entry : hoisted_) {
    for (llvm::Use* use : entry.uses) use->set(entry.original);
    scev_->forgetValue(entry.twin);
  }
  for (std::size_t i = hoisted_.size(); i-- > 0;) {
    if (hoisted_[i].twin->use_empty()) hoisted_[i].twin->eraseFromParent();
  }
  hoisted_.clear();
  scev_->forgetLoop(&loop);
}

// Where the address of the first round comes from, if not from a word of the record.
bool LoopCopier::locate(const Located& item, std::span<const Located> earlier, LayoutItem& out) {
  const SCEV* const first = item.first;
  const SCEV* base = first;
  std::int64_t offset = 0;
  if (const auto* sum = dyn_cast<llvm::SCEVAddExpr>(first);
      sum != nullptr && sum->getNumOperands() == 2) {
    if (const auto* constant = dyn_cast<llvm::SCEVConstant>(sum->getOperand(0))) {
      offset = constant->getAPInt().getSExtValue();
      base = sum->getOperand(1);
    }
  }
  if (const auto* value = dyn_cast<llvm::SCEVUnknown>(base); value != nullptr && !item.gathered) {
    auto* variable = dyn_cast<llvm::GlobalVariable>(value->getValue());
    if (variable != nullptr && unit_.known_symbol(variable, out.reference)) {
      out.source = LayoutItem::Source::kSymbol;
      out.offset = offset;
      return true;
    }
  }
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].gathered != item.gathered) continue;
    const SCEV* apart = scev_->getMinusSCEV(first, earlier[i].first);
    const auto* constant = dyn_cast<llvm::SCEVConstant>(apart);
    if (constant == nullptr) continue;
    out.source = LayoutItem::Source::kItem;
    out.reference = static_cast<std::uint32_t>(i);
    out.offset = constant->getAPInt().getSExtValue();
    return true;
  }
  return false;
}

// An index in a wider type. Sums that must not overflow are extended term by term: scalar evolution
// does not do that in a loop that tests first, because the sum might overflow in the round that
// ends at the test; but there the access is not made.
const SCEV* LoopCopier::extended(Value* index, llvm::Type* type) {
  const auto* sum = dyn_cast<llvm::BinaryOperator>(index);
  if (sum != nullptr && sum->getType()->isIntegerTy() &&
      (sum->getOpcode() == Instruction::Add || sum->getOpcode() == Instruction::Sub ||
       sum->getOpcode() == Instruction::Mul) &&
      sum->hasNoSignedWrap()) {
    const SCEV* left = extended(sum->getOperand(0), type);
    const SCEV* right = extended(sum->getOperand(1), type);
    return sum->getOpcode() == Instruction::Add   ? scev_->getAddExpr(left, right)
           : sum->getOpcode() == Instruction::Sub ? scev_->getMinusSCEV(left, right)
                                                  : scev_->getMulExpr(left, right);
  }
  return scev_->getNoopOrSignExtend(scev_->getSCEV(index), type);
}

const SCEV* LoopCopier::address_of(const Access& access, const Loop& loop) {
  const SCEV* known = scev_->getSCEV(access.address);
  if (isa<llvm::SCEVAddRecExpr>(known) || scev_->isLoopInvariant(known, &loop)) return known;
  const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
  const unsigned width = layout.getIndexSizeInBits(0);
  llvm::Type* word = llvm::IntegerType::get(function_.getContext(), width);
  llvm::MapVector<Value*, llvm::APInt> indices;
  llvm::APInt constant(width, 0);
  Value* base = access.address;
  while (auto* element = dyn_cast<llvm::GEPOperator>(base)) {
    if (!element->collectOffset(layout, width, indices, constant)) break;
    base = element->getPointerOperand();
  }
  const SCEV* sum = scev_->getConstant(constant);
  for (auto& [index, scale] : indices) {
    const auto* wider = dyn_cast<llvm::SExtInst>(index);
    const SCEV* value = extended(wider != nullptr ? wider->getOperand(0) : index, word);
    sum = scev_->getAddExpr(sum, scev_->getMulExpr(value, scev_->getConstant(scale)));
  }
  return scev_->getAddExpr(scev_->getSCEV(base), sum);
}

// Nothing if it does not follow, at the entry, what the loop will do. Computes rounds_ and words_.
std::optional<LoopLayout> LoopCopier::describe(Loop& loop, const Round& round) {
  llvm::SCEVExpander expander(*scev_, function_.getParent()->getDataLayout(), "heddle", false);
  llvm::Type* word = llvm::Type::getInt64Ty(function_.getContext());
  words_.clear();
  gathered_.clear();
  const SCEV* again = scev_->getBackedgeTakenCount(&loop);
  if (isa<llvm::SCEVCouldNotCompute>(again) || scev_->getTypeSizeInBits(again->getType()) > 64) {
    return std::nullopt;
  }
  rounds_ = scev_->getAddExpr(scev_->getNoopOrZeroExtend(again, word), scev_->getOne(word));
  if (!expander.isSafeToExpandAt(rounds_, choose_->getTerminator())) return std::nullopt;

  LoopLayout layout;
  layout.always = round.in_header;
  if (round.kind() == HEDDLE_LOOP_WHOLE) layout.parts = round.parts;
  std::vector<Located> first;
  std::vector<const SCEV*> steps;
  for (const PlannedItem* item : round.items) {
    const SCEV* address = address_of(item->access, loop);
    const SCEV* step = scev_->getZero(word);
    if (const auto* moving = dyn_cast<llvm::SCEVAddRecExpr>(address);
        moving != nullptr && moving->getLoop() == &loop) {
      if (moving->isAffine()) {
        step = scev_->getNoopOrSignExtend(moving->getStepRecurrence(*scev_), word);
        address = moving->getStart();
      }
    }
    const bool gathered = !scev_->isLoopInvariant(address, &loop) ||
                          !scev_->isLoopInvariant(step, &loop) ||
                          !expander.isSafeToExpandAt(address, record_->getTerminator()) ||
                          !expander.isSafeToExpandAt(step, record_->getTerminator());
    if (gathered) {
      address = scev_->getSCEV(item->access.address);
      step = nullptr;
    }
    LoopItem entry;
    entry.site = item->site;
    const bool located = locate({address, gathered}, first, entry.first);
    if (!located && !gathered) words_.push_back(address);
    const auto known = std::find(steps.begin(), steps.end(), step);
    if (gathered && !located) {
      entry.step = LoopItem::Step::kGathered;
      gathered_.push_back(item->access.instruction);
    } else if (gathered) {
      entry.step = LoopItem::Step::kItem;
      entry.reference = entry.first.reference;
    } else if (const auto* constant = dyn_cast<llvm::SCEVConstant>(step)) {
      entry.distance = constant->getAPInt().getSExtValue();
    } else if (known != steps.end()) {
      entry.step = LoopItem::Step::kItem;
      entry.reference = static_cast<std::uint32_t>(known - steps.begin());
    } else {
      entry.step = LoopItem::Step::kWord;
      words_.push_back(step);
    }
    first.push_back({address, gathered});
    steps.push_back(step);
    layout.items.push_back(entry);
  }
  if (layout.words() > kMostWords || gathered_.size() > HEDDLE_LOOP_GATHERED) return std::nullopt;
  return layout;
}

void LoopCopier::copy(Loop& loop, heddle_loop_kind kind) {
  BasicBlock* header = loop.getHeader();
  BasicBlock* exit = loop.getExitBlock();
  llvm::ValueToValueMapTy map;
  llvm::SmallVector<BasicBlock*, 2> copies;
  for (BasicBlock* block : loop.blocks()) {
    BasicBlock* twin = llvm::CloneBasicBlock(block, map, ".plain", &function_);
    map[block] = twin;
    copies.push_back(twin);
    out_.blocks.push_back(block);
  }
  llvm::remapInstructionsInBlocks(copies, map);
  auto* plain_header = llvm::cast<BasicBlock>(map[header]);

  for (Instruction* access : gathered_) {
    out_.gathered.push_back(llvm::cast<Instruction>(map[access]));
  }
  if (!gathered_.empty()) {
    auto* latch = llvm::cast<BasicBlock>(map[loop.getLoopLatch()]);
    out_.again = BasicBlock::Create(function_.getContext(), "heddle.again", &function_);
    llvm::BranchInst::Create(plain_header, out_.again);
    latch->getTerminator()->replaceSuccessorWith(plain_header, out_.again);
    plain_header->replacePhiUsesWith(latch, out_.again);
    copies.push_back(out_.again);
  }

  BasicBlock* finish = BasicBlock::Create(function_.getContext(), "heddle.finish", &function_);
  llvm::BranchInst::Create(exit, finish);
  plain_header->getTerminator()->replaceSuccessorWith(exit, finish);
  for (llvm::PHINode& phi : exit->phis()) {
    Value* value = phi.getIncomingValueForBlock(header);
    const auto twin = map.find(value);
    phi.addIncoming(twin != map.end() ? static_cast<Value*>(twin->second) : value, finish);
  }
  // choose -> record -> header becomes choose -> record -> copy, choose -> header.
  header->replacePhiUsesWith(record_, choose_);
  record_->getTerminator()->replaceSuccessorWith(header, plain_header);
  out_.record = record_;
  out_.finish = finish;
  const auto is_ours = [&](const Instruction& instruction) {
    return std::any_of(hoisted_.begin(), hoisted_.end(),
                       [&](const Hoisted& entry) { return entry.twin == &instruction; });
  };
  for (BasicBlock* block : out_.blocks) {
    for (Instruction& instruction : *block) {
      const auto twin = map.find(&instruction);
      if (twin == map.end() || instruction.getType()->isVoidTy() || is_ours(instruction)) continue;
      out_.values.emplace_back(&instruction, llvm::cast<Instruction>(twin->second));
    }
  }

  llvm::IRBuilder<> builder(choose_->getTerminator());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  llvm::Type* word = builder.getInt64Ty();
  Value* most = builder.CreateLoad(word, unit_.loop_rounds(kind));
  Value* plain =
      out_.recorded
          ? builder.CreateICmpULT(
                builder.CreateSub(out_.rounds, llvm::ConstantInt::get(word, HEDDLE_LOOP_FEWEST)),
                most)
          : builder.CreateIsNotNull(most);
  builder.CreateCondBr(plain, record_, header,
                       llvm::MDBuilder(function_.getContext()).createBranchWeights(1000, 1));
  choose_->getTerminator()->eraseFromParent();

  if (Loop* outer = loop.getParentLoop()) {
    for (BasicBlock* block : copies) outer->addBasicBlockToLoop(block, loops_);
  }
  if (Loop* around = loops_.getLoopFor(exit)) around->addBasicBlockToLoop(finish, loops_);
  tree_.recalculate(function_);
  // The instrumented one is there for runs that look closely, not for speed.
  llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.disable");
}

void LoopCopier::add_slots(LoopLayout layout) {
  out_.slot = unit_.add_loop_slot(layout);
  if (layout.round_words() == 0) return;
  out_.last_words = layout.last_words();
  layout.always = static_cast<std::uint32_t>(layout.items.size());
  out_.piece = unit_.add_loop_slot(layout);
}

std::optional<CopiedLoop> LoopCopier::try_loop(Loop& loop) {
  if (!has_shape(loop)) return std::nullopt;
  const std::optional<Round> round = round_of(loop);
  if (!round.has_value()) return std::nullopt;
  if (scev_ == nullptr) {
    scev_ = &analyses_.getResult<llvm::ScalarEvolutionAnalysis>(function_);
    aliases_ = &analyses_.getResult<llvm::AAManager>(function_);
  }
  out_ = {};
  out_.recorded = !round->items.empty();
  make_entry(loop);
  if (out_.recorded) {
    hoist(loop);
    const std::optional<LoopLayout> layout = describe(loop, *round);
    if (!layout.has_value()) {
      put_back(loop);
      return std::nullopt;
    }
    out_.words_per_round = round->words - layout->round_words();
    add_slots(*layout);
    llvm::SCEVExpander expander(*scev_, function_.getParent()->getDataLayout(), "heddle", false);
    out_.rounds = expander.expandCodeFor(rounds_, nullptr, choose_->getTerminator()->getIterator());
    for (const SCEV* value : words_) {
      out_.words.push_back(
          expander.expandCodeFor(value, nullptr, record_->getTerminator()->getIterator()));
    }
  }
  copy(loop, round->kind());
  if (out_.recorded) put_back(loop);
  return std::move(out_);
}

std::vector<CopiedLoop> LoopCopier::run() {
  std::vector<CopiedLoop> out;
  // From back to front: what a loop takes over from one before it still has one place.
  for (Loop* loop : loops_.getLoopsInReverseSiblingPreorder()) {
    if (std::optional<CopiedLoop> copied = try_loop(*loop)) out.push_back(std::move(*copied));
  }
  return out;
}

}  // namespace

std::vector<CopiedLoop> copy_loops(llvm::Function& function, const FunctionPlan& plan, Unit& unit,
                                   const llvm::TargetLibraryInfo& library,
                                   llvm::FunctionAnalysisManager& analyses) {
  // A coroutine's activation may move from thread to thread; after a second return a loop's values
  // are not those of its entry.
  if (function.isPresplitCoroutine() || function.callsFunctionThatReturnsTwice()) return {};
  return LoopCopier(function, plan, unit, library, analyses).run();
}

void join_values(const CopiedLoop& loop) {
  const auto inside = [&](const BasicBlock* block) {
    return std::find(loop.blocks.begin(), loop.blocks.end(), block) != loop.blocks.end();
  };
  for (const auto& [value, twin] : loop.values) {
    std::vector<llvm::Use*> behind;
    for (llvm::Use& use : value->uses()) {
      const auto* user = llvm::cast<Instruction>(use.getUser());
      const auto* phi = dyn_cast<llvm::PHINode>(user);
      if (!inside(phi != nullptr ? phi->getIncomingBlock(use) : user->getParent())) {
        behind.push_back(&use);
      }
    }
    if (behind.empty()) continue;
    llvm::SmallVector<llvm::PHINode*, 4> joined;
    llvm::SSAUpdater updater(&joined);
    updater.Initialize(value->getType(), value->getName());
    updater.AddAvailableValue(value->getParent(), value);
    updater.AddAvailableValue(twin->getParent(), twin);
    for (llvm::Use* use : behind) updater.RewriteUse(*use);
    llvm::insertDebugValuesForPHIs(value->getParent(), joined);
  }
}

}  // namespace heddle::instrument
