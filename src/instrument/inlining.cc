#include "instrument/inlining.h"

#include "instrument/function_facts.h"

#include <utility>

#include <llvm/ADT/SCCIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace heddle::instrument {
namespace {

constexpr unsigned kSmall = 60;        // instructions of a function that is put into its callers
constexpr unsigned kLargest = 20'000;  // of a caller that takes any more

bool takes_nothing(const llvm::Function& caller) {
  return caller.isPresplitCoroutine() || caller.hasFnAttribute(llvm::Attribute::Naked);
}

// Asked for in the source, which goes for functions of the library only: without optimisation the
// front end says it of every function, together with `optnone`, so that the program's own functions
// would be treated differently at different levels. All levels record the same accesses.
bool wants_to_stay(const llvm::Function& function) {
  return function.hasFnAttribute(llvm::Attribute::NoInline) && !function.hasOptNone();
}

// Whether `function` can go into its callers. `in_cycle`: it calls itself, perhaps through others.
bool goes_inline(const llvm::Function& function, bool in_cycle) {
  if (function.isDeclaration() || in_cycle || function.isVarArg() || function.isInterposable() ||
      function.isPresplitCoroutine() || function.callsFunctionThatReturnsTwice() ||
      (wants_to_stay(function) && is_standard(function)) ||
      function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation)) {
    return false;
  }
  return function.getInstructionCount() <= kSmall;
}

using Functions = llvm::SmallPtrSet<const llvm::Function*, 32>;
using Calls = llvm::SmallSetVector<llvm::CallBase*, 16>;

// Looks for uses of a pointer that let others know it, but for some calls.
class Tracker : public llvm::CaptureTracker {
 public:
  explicit Tracker(std::function<bool(const llvm::CallBase&)> harmless)
      : harmless_(std::move(harmless)) {}

  void tooManyUses() override { captured_ = true; }
  bool captured(const llvm::Use* use) override {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(use->getUser());
    if (call != nullptr && call->isArgOperand(use) && harmless_(*call)) return false;
    captured_ = true;
    return true;
  }
  bool stays_here(const llvm::Value& pointer) {
    captured_ = false;
    llvm::PointerMayBeCaptured(&pointer, this, /*MaxUsesToExplore=*/200);
    return !captured_;
  }

 private:
  std::function<bool(const llvm::CallBase&)> harmless_;
  bool captured_ = false;
};

// A function that touches only what its callers hand to it by pointers, and keeps none of these.
class Modesty {
 public:
  bool judge(const llvm::Function& function) {
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!is_modest(instruction)) return false;
    }
    Tracker tracker([this](const llvm::CallBase& call) { return calls_modest(call); });
    for (const llvm::Argument& argument : function.args()) {
      if (argument.getType()->isPointerTy() && !tracker.stays_here(argument)) return false;
    }
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::AllocaInst>(instruction) && !tracker.stays_here(instruction)) {
        return false;
      }
    }
    modest_.insert(&function);
    return true;
  }

  bool calls_modest(const llvm::CallBase& call) const {
    return call.getCalledFunction() != nullptr && modest_.contains(call.getCalledFunction());
  }

 private:
  static bool is_handed(const llvm::Value* pointer) {
    llvm::SmallVector<const llvm::Value*, 4> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, /*MaxLookup=*/16);
    return !objects.empty() && llvm::all_of(objects, [](const llvm::Value* object) {
      const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
      return llvm::isa<llvm::Argument, llvm::AllocaInst>(object) ||
             (global != nullptr && global->isConstant());
    });
  }
  static bool hands_on(const llvm::CallBase& call) {
    return llvm::all_of(call.args(), [](const llvm::Use& argument) {
      return !argument->getType()->isPointerTy() || is_handed(argument.get());
    });
  }
  static bool asks_for_its_frame(const llvm::IntrinsicInst& intrinsic) {
    return intrinsic.getIntrinsicID() == llvm::Intrinsic::returnaddress ||
           intrinsic.getIntrinsicID() == llvm::Intrinsic::addressofreturnaddress ||
           intrinsic.getIntrinsicID() == llvm::Intrinsic::frameaddress;
  }
  bool is_modest(const llvm::Instruction& instruction) const {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      return load->isSimple() && is_handed(load->getPointerOperand());
    }
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      return store->isSimple() && is_handed(store->getPointerOperand());
    }
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
      if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call)) {
        return !asks_for_its_frame(*intrinsic) &&
               (intrinsic->isAssumeLikeIntrinsic() || intrinsic->doesNotAccessMemory() ||
                (llvm::isa<llvm::MemIntrinsic>(intrinsic) && hands_on(*call)));
      }
      return calls_modest(*call) && hands_on(*call);
    }
    return !instruction.mayReadOrWriteMemory() && !instruction.mayThrow() && !instruction.isEHPad();
  }

  Functions modest_;
};

// The calls of modest functions in `caller` that are handed nothing but locals which nobody else
// knows.
Calls private_calls(llvm::Function& caller, const Modesty& modesty) {
  Calls calls;
  for (llvm::Instruction& instruction : llvm::instructions(caller)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && modesty.calls_modest(*call)) calls.insert(call);
  }
  // One call that is not private lets somebody know the locals that it is handed.
  for (bool changed = true; changed;) {
    changed = false;
    llvm::SmallDenseMap<const llvm::Value*, bool> known;
    Tracker tracker([&](const llvm::CallBase& call) {
      return calls.contains(const_cast<llvm::CallBase*>(&call));
    });
    const auto is_private = [&](const llvm::Use& argument) {
      if (!argument->getType()->isPointerTy()) return true;
      const llvm::Value* object = llvm::getUnderlyingObject(argument.get(), /*MaxLookup=*/16);
      if (!llvm::isa<llvm::AllocaInst>(object)) return false;
      const auto [at, is_new] = known.try_emplace(object, false);
      if (is_new) at->second = tracker.stays_here(*object);
      return at->second;
    };
    const Calls before = calls;
    for (llvm::CallBase* call : before) {
      if (llvm::all_of(call->args(), is_private)) continue;
      calls.remove(call);
      changed = true;
    }
  }
  return calls;
}

// Whether anything was.
bool take_in(llvm::Function& caller, const Calls& calls) {
  unsigned size = caller.getInstructionCount();
  bool any = false;
  for (llvm::CallBase* call : calls) {
    if (size > kLargest) break;
    if (call->isMustTailCall()) continue;
    size += call->getCalledFunction()->getInstructionCount();
    llvm::InlineFunctionInfo info;
    any |= llvm::InlineFunction(*call, info).isSuccess();  // what cannot be inlined stays a call
  }
  return any;
}

Calls calls_of(llvm::Function& caller, const Functions& wanted) {
  Calls calls;
  for (llvm::Instruction& instruction : llvm::instructions(caller)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || call->getAttributes().hasFnAttr(llvm::Attribute::NoInline)) continue;
    if (wanted.contains(call->getCalledFunction())) calls.insert(call);
  }
  return calls;
}

}  // namespace

void inline_small(llvm::Module& module, const std::function<bool(llvm::Function&)>& wanted,
                  const std::function<void(llvm::Function&)>& clean_up) {
  constexpr int kDeepest = 4;  // calls in calls
  llvm::CallGraph graph(module);
  Functions of_library;
  Modesty modesty;
  for (auto scc = llvm::scc_begin(&graph); !scc.isAtEnd(); ++scc) {
    for (llvm::CallGraphNode* node : *scc) {
      llvm::Function* function = node->getFunction();
      if (function == nullptr || !wanted(*function)) continue;
      const bool takes = !takes_nothing(*function);
      if (takes) take_in(*function, calls_of(*function, of_library));
      clean_up(*function);
      for (int depth = 0; takes && depth < kDeepest; ++depth) {
        if (!take_in(*function, private_calls(*function, modesty))) break;
        clean_up(*function);
      }
      if (!goes_inline(*function, scc.hasCycle())) continue;
      if (is_standard(*function)) {
        of_library.insert(function);
      } else {
        modesty.judge(*function);
      }
    }
  }
}

}  // namespace heddle::instrument
