#include "instrument/joined.h"

#include <algorithm>
#include <functional>

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr unsigned kSmall = 40;         // instructions of a function that is copied
constexpr unsigned kMostWords = 64;     // of a joined record …
constexpr std::size_t kMostItems = 32;  // … which others have a bit for each of

bool is_straight(const llvm::Instruction& instruction) {
  if (const auto* load = dyn_cast<llvm::LoadInst>(&instruction)) return load->isSimple();
  if (const auto* store = dyn_cast<llvm::StoreInst>(&instruction)) return store->isSimple();
  if (const auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    return intrinsic->isAssumeLikeIntrinsic() || intrinsic->doesNotAccessMemory();
  }
  return isa<llvm::ReturnInst>(instruction) ||
         (!instruction.mayReadOrWriteMemory() && !instruction.mayThrow() &&
          !isa<llvm::AllocaInst>(instruction) && !isa<llvm::CallBase>(instruction) &&
          !instruction.isTerminator());
}

// The words of a call begin with those of its object, so they must be its own.
bool can_be_copied(const PlannedItem& item) {
  return item.is_simple() && item.layout.source != LayoutItem::Source::kSymbol &&
         isa<llvm::LoadInst, llvm::StoreInst>(item.access.instruction);
}

class Joiner {
 public:
  Joiner(FunctionPlan& plan, std::vector<CopiedLoop>& loops, const Joinable& joinable, Unit& unit)
      : plan_(plan), loops_(loops), joinable_(joinable), unit_(unit) {}

  void run() {
    for (BlockPlan& block : plan_.blocks) {
      if (std::any_of(block.steps.begin(), block.steps.end(),
                      [this](const Step& step) { return callee_of(step) != nullptr; })) {
        join(block);
      }
    }
    forget_calls();
  }

 private:
  const FunctionPlan* callee_of(const Step& step) const;
  bool has_room_for(std::size_t words, std::size_t items) const {
    return joined_.words + words <= kMostWords && joined_.items.size() + items <= kMostItems;
  }
  void join(BlockPlan& block);
  bool add_segment(const Step& step);
  bool add_call(const Step& step, const FunctionPlan& callee);
  void close(std::vector<Step>& out);
  void copy_body(llvm::CallInst& call, llvm::Function& callee, llvm::ValueToValueMapTy& copies);
  void forget_calls();

  FunctionPlan& plan_;
  std::vector<CopiedLoop>& loops_;
  const Joinable& joinable_;
  Unit& unit_;

  // The record that is being put together.
  std::vector<Step> plain_;  // its steps, if no call is among them after all
  bool any_call_ = false;
  Step joined_;
  std::vector<JoinedPart> parts_;

  // Calls that are gone, and what there is now.
  struct InPlace {
    llvm::Value* result{};
    llvm::Instruction* first{};  // of the body, or what follows
  };
  llvm::MapVector<llvm::Instruction*, InPlace> gone_;
};

// nullptr: not a call that can be joined.
const FunctionPlan* Joiner::callee_of(const Step& step) const {
  if (step.kind != Step::Kind::kCall || step.site == 0) return nullptr;
  const auto* call = dyn_cast<llvm::CallInst>(step.at);
  if (call == nullptr || call->isMustTailCall() || call->getDebugLoc().get() == nullptr) {
    return nullptr;
  }
  return joinable_.find(call->getCalledFunction());
}

void Joiner::join(BlockPlan& block) {
  std::vector<Step> out;
  for (Step& step : block.steps) {
    const FunctionPlan* callee = callee_of(step);
    const auto add = [&] {
      return callee != nullptr ? add_call(step, *callee) : add_segment(step);
    };
    if (add()) continue;
    close(out);
    if (!add()) out.push_back(std::move(step));
  }
  close(out);
  block.steps = std::move(out);
}

// Whether it became part of the record.
bool Joiner::add_segment(const Step& step) {
  if (step.kind != Step::Kind::kSegment && step.kind != Step::Kind::kFlowSegment) return false;
  if (!std::all_of(step.items.begin(), step.items.end(), std::mem_fn(&PlannedItem::is_simple)))
    return false;
  if (!has_room_for(step.words, step.items.size())) return false;
  for (PlannedItem item : step.items) {
    item.word += joined_.words;
    joined_.items.push_back(item);
  }
  joined_.words += step.words;
  parts_.push_back({.slot = step.slot, .call_site = 0});
  plain_.push_back(step);
  return true;
}

bool Joiner::add_call(const Step& step, const FunctionPlan& callee) {
  const Step& enter = callee.blocks[0].steps[0];
  const Step& segment = callee.blocks[0].steps[1];
  const unsigned object_words = enter.words - 1;  // of an Enter, the first is the call
  if (!has_room_for(object_words + segment.words, segment.items.size())) return false;
  auto& call = llvm::cast<llvm::CallInst>(*step.at);
  llvm::Value* object = callee.method ? call.getArgOperand(callee.object_argument) : nullptr;
  joined_.words += object_words;
  llvm::ValueToValueMapTy copies;
  copy_body(call, *callee.function, copies);
  for (PlannedItem item : segment.items) {
    item.access.instruction = llvm::cast<llvm::Instruction>(copies.lookup(item.access.instruction));
    if (llvm::Value* address = copies.lookup(item.access.address)) item.access.address = address;
    item.word += joined_.words;
    item.object = std::exchange(object, nullptr);
    joined_.items.push_back(item);
  }
  joined_.words += segment.words;
  parts_.push_back({.slot = enter.slot, .call_site = step.site});
  any_call_ = true;
  return true;
}

void Joiner::close(std::vector<Step>& out) {
  if (any_call_) {
    joined_.kind = Step::Kind::kSegment;
    joined_.slot = unit_.add_joined_slot(joined_.words, parts_);
    joined_.parts = parts_;
    out.push_back(std::move(joined_));
  } else {
    std::move(plain_.begin(), plain_.end(), std::back_inserter(out));
  }
  joined_ = {};
  parts_.clear();
  plain_.clear();
  any_call_ = false;
}

// In front of the call. `copies`: what the body has become, by what it was.
void Joiner::copy_body(llvm::CallInst& call, llvm::Function& callee,
                       llvm::ValueToValueMapTy& copies) {
  for (llvm::Argument& argument : callee.args()) {
    copies[&argument] = call.getArgOperand(argument.getArgNo());
  }
  llvm::LLVMContext& context = callee.getContext();
  const llvm::DILocation& place = *call.getDebugLoc().get();
  llvm::DILocation* const here =
      llvm::DILocation::getDistinct(context, place.getLine(), place.getColumn(), place.getScope(),
                                    place.getInlinedAt(), place.isImplicitCode());
  llvm::DenseMap<const llvm::MDNode*, llvm::MDNode*> known;
  for (llvm::Instruction& original : callee.getEntryBlock()) {
    if (original.isTerminator()) {
      llvm::Value* result = llvm::PoisonValue::get(call.getType());
      if (original.getNumOperands() != 0) {
        result = original.getOperand(0);
        if (llvm::Value* copy = copies.lookup(result)) result = copy;
      }
      gone_[&call].result = result;
      break;
    }
    const auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&original);
    if (intrinsic != nullptr && intrinsic->isAssumeLikeIntrinsic()) continue;
    llvm::Instruction* copy = original.clone();
    copy->insertBefore(&call);
    llvm::RemapInstruction(copy, copies,
                           llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
    // What is said about two pointers of one call need not be true of those of two.
    copy->setMetadata(llvm::LLVMContext::MD_noalias, nullptr);
    copy->setMetadata(llvm::LLVMContext::MD_alias_scope, nullptr);
    copy->setDebugLoc(
        original.getDebugLoc().get() != nullptr
            ? llvm::DebugLoc::appendInlinedAt(original.getDebugLoc(), here, context, known)
            : call.getDebugLoc());
    copies[&original] = copy;
    if (llvm::Instruction*& first = gone_[&call].first; first == nullptr) first = copy;
  }
  if (llvm::Instruction*& first = gone_[&call].first; first == nullptr) first = call.getNextNode();
}

// The plan and the loops refer to them, and to their results.
void Joiner::forget_calls() {
  const auto in_place = [this](llvm::Value* value) {
    auto* call = llvm::dyn_cast_or_null<llvm::Instruction>(value);
    const auto found = call != nullptr ? gone_.find(call) : gone_.end();
    return found != gone_.end() ? &found->second : nullptr;
  };
  const auto fix = [&](llvm::Value*& value) {
    while (const InPlace* now = in_place(value)) value = now->result;
  };
  for (BlockPlan& block : plan_.blocks) {
    for (Step& step : block.steps) {
      while (const InPlace* now = in_place(step.at)) step.at = now->first;
      for (PlannedItem& item : step.items) {
        fix(item.access.address);
        fix(item.access.length);
        fix(item.object);
      }
    }
  }
  for (CopiedLoop& loop : loops_) {
    fix(loop.rounds);
    for (llvm::Value*& word : loop.words) fix(word);
  }
  for (const auto& [call, now] : gone_) {
    llvm::Value* result = now.result;
    fix(result);
    call->replaceAllUsesWith(result);
  }
  for (const auto& [call, now] : gone_) call->eraseFromParent();
}

}  // namespace

bool may_be_joined(const llvm::Function& function) {
  return function.size() == 1 && !function.isVarArg() && !function.isInterposable() &&
         !function.isPresplitCoroutine() &&
         !(function.hasFnAttribute(llvm::Attribute::NoInline) && !function.hasOptNone()) &&
         !function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation) &&
         function.getInstructionCount() <= kSmall &&
         isa<llvm::ReturnInst>(function.getEntryBlock().getTerminator()) &&
         std::all_of(function.getEntryBlock().begin(), function.getEntryBlock().end(), is_straight);
}

void Joinable::add(const FunctionPlan& plan) {
  const std::vector<Step>& steps = plan.blocks[0].steps;
  if (plan.frame || steps.size() != 3 || steps[0].kind != Step::Kind::kEnter ||
      steps[1].kind != Step::Kind::kSegment || steps[2].kind != Step::Kind::kLeave) {
    return;
  }
  if (!std::all_of(steps[1].items.begin(), steps[1].items.end(), can_be_copied)) return;
  plans_[plan.function] = &plan;
}

void join_calls(FunctionPlan& plan, std::vector<CopiedLoop>& loops, const Joinable& joinable,
                Unit& unit) {
  // What such a function calls was called by its caller, which is known when it runs.
  if (plan.passes_calls || plan.function->isPresplitCoroutine()) return;
  Joiner(plan, loops, joinable, unit).run();
}

}  // namespace heddle::instrument
