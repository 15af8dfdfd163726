#include "instrument/library_inlining.h"

#include "instrument/function_facts.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace heddle::instrument {
namespace {

constexpr unsigned kSmall = 60;        // instructions of a function that is put into its callers
constexpr unsigned kLargest = 20'000;  // of a caller that takes any more

bool takes_nothing(const llvm::Function& caller) {
  return caller.isPresplitCoroutine() || caller.hasFnAttribute(llvm::Attribute::Naked);
}

// Asked for in the source. Without optimisation the front end says it of every function, together
// with `optnone`; that is no wish of the library's author, and all levels record the same accesses.
bool wants_to_stay(const llvm::Function& function) {
  return function.hasFnAttribute(llvm::Attribute::NoInline) && !function.hasOptNone();
}

// Whether `function` may go into its callers. `in_cycle`: it calls itself, perhaps through others.
bool goes_inline(const llvm::Function& function, bool in_cycle) {
  if (function.isDeclaration() || in_cycle || function.isVarArg() || function.isInterposable() ||
      function.isPresplitCoroutine() || function.callsFunctionThatReturnsTwice() ||
      wants_to_stay(function) ||
      function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation)) {
    return false;
  }
  return function.getInstructionCount() <= kSmall && is_standard(function);
}

void take_in(llvm::Function& caller, const llvm::SmallPtrSetImpl<llvm::Function*>& small) {
  if (takes_nothing(caller)) return;
  std::vector<llvm::CallBase*> calls;
  for (llvm::Instruction& instruction : llvm::instructions(caller)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || call->isMustTailCall()) continue;
    if (call->getAttributes().hasFnAttr(llvm::Attribute::NoInline)) continue;
    if (small.contains(call->getCalledFunction())) calls.push_back(call);
  }
  unsigned size = caller.getInstructionCount();
  for (llvm::CallBase* call : calls) {
    if (size > kLargest) break;
    size += call->getCalledFunction()->getInstructionCount();
    llvm::InlineFunctionInfo info;
    (void)llvm::InlineFunction(*call, info);  // what cannot be inlined stays a call
  }
}

}  // namespace

void inline_library(llvm::Module& module, const std::function<bool(llvm::Function&)>& wanted,
                    const std::function<void(llvm::Function&)>& clean_up) {
  llvm::CallGraph graph(module);
  llvm::SmallPtrSet<llvm::Function*, 32> small;
  for (auto scc = llvm::scc_begin(&graph); !scc.isAtEnd(); ++scc) {
    for (llvm::CallGraphNode* node : *scc) {
      llvm::Function* function = node->getFunction();
      if (function == nullptr || !wanted(*function)) continue;
      take_in(*function, small);
      clean_up(*function);
      if (goes_inline(*function, scc.hasCycle())) small.insert(function);
    }
  }
}

}  // namespace heddle::instrument
