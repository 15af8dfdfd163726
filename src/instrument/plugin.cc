// The clang plugin: instruments a translation unit at the start of the optimiser's pipeline.
//
// Where in the pipeline decides what can be found. Later, the optimiser has merged and deleted the
// very accesses in which the bugs live (early common-subexpression elimination already merges two
// reads of a flag), and the names are gone. So everything happens in one pass at PipelineStart,
// which every -O level and the pre-link half of both kinds of LTO run:
//
//   1. facts      describe every access while the front end's shape is there         facts.h
//   2. inline     small functions of the standard library, and calls that touch nothing but the
//                 caller's own locals, go into their callers                     inlining.h
//      clean up   locals whose address stays here become registers; dead and empty blocks go.
//                 Nothing that could merge, move or invent an access of shared memory
//   3. plan       sites, segments, flow facts                                         plan.h
//   4. copy       loops that can be recorded as a whole                               loops.h
//      join       calls of small functions with what stands around them              joined.h
//      extend     records beyond the end of their block                            extended.h
//   5. emit       the inline code, then the tables                            emit.h, unit.h
//
// Because nothing before depends on the -O level, all levels record the same accesses.
#include "instrument/debug_types.h"
#include "instrument/emit.h"
#include "instrument/extended.h"
#include "instrument/facts.h"
#include "instrument/inlining.h"
#include "instrument/joined.h"
#include "instrument/loops.h"
#include "instrument/plan.h"
#include "instrument/unit.h"

#include <algorithm>
#include <set>

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/BuildLibCalls.h>
#include <llvm/Transforms/Utils/Local.h>

namespace heddle::instrument {
namespace {

// A resolver runs while the dynamic linker is at work, before thread-local storage can be used.
llvm::SmallPtrSet<const llvm::Function*, 4> resolvers(const llvm::Module& module) {
  llvm::SmallPtrSet<const llvm::Function*, 4> out;
  for (const llvm::GlobalIFunc& indirect : module.ifuncs()) {
    out.insert(indirect.getResolverFunction());
  }
  return out;
}

bool leave_alone(const llvm::Function& function) {
  return function.isDeclaration() || function.hasFnAttribute(llvm::Attribute::Naked) ||
         function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation) ||
         function.getName().starts_with("__heddle");
}

void clean_up(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  llvm::removeUnreachableBlocks(function);
  // A local that changes between setjmp and longjmp keeps its slot: without optimisation programs
  // count on it.
  if (!function.callsFunctionThatReturnsTwice()) {
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    llvm::SROAPass(llvm::SROAOptions::PreserveCFG).run(function, analyses);
  }
  for (llvm::BasicBlock& block : llvm::make_early_inc_range(function)) {
    if (block.isEntryBlock()) continue;
    if (auto* jump = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
        jump != nullptr && jump->isUnconditional() && !block.hasAddressTaken() &&
        block.getFirstNonPHIOrDbg() == jump) {
      if (llvm::TryToSimplifyUncondBranchFromEmptyBlock(&block)) continue;
    }
    llvm::MergeBlockIntoPredecessor(&block);
  }
  analyses.invalidate(function, llvm::PreservedAnalyses::none());
}

class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
 public:
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& manager) {
    if (module.getNamedMetadata("heddle.done") != nullptr) return llvm::PreservedAnalyses::all();
    module.getOrInsertNamedMetadata("heddle.done");
    auto& analyses =
        manager.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();

    std::vector<llvm::Function*> functions;
    const auto excluded = resolvers(module);
    for (llvm::Function& function : module) {
      if (!leave_alone(function) && !excluded.contains(&function)) functions.push_back(&function);
    }
    if (functions.empty()) return llvm::PreservedAnalyses::all();

    const DebugTypes types(module);
    Facts facts(module, types);
    for (llvm::Function* function : functions) facts.attach(*function);

    // What is known about the C library's functions: which of them do not keep a pointer.
    for (llvm::Function& function : module) {
      if (function.isDeclaration() && !function.isIntrinsic()) {
        llvm::inferNonMandatoryLibFuncAttrs(
            function, analyses.getResult<llvm::TargetLibraryAnalysis>(*functions.front()));
      }
    }

    const std::set<llvm::Function*> wanted(functions.begin(), functions.end());
    inline_small(
        module, [&](llvm::Function& function) { return wanted.contains(&function); },
        [&](llvm::Function& function) { clean_up(function, analyses); });
    // Functions that nobody calls any more would only be described for nothing.
    std::erase_if(functions, [](llvm::Function* function) {
      function->removeDeadConstantUsers();
      const llvm::Comdat* group = function->getComdat();
      return function->isDiscardableIfUnused() && function->use_empty() &&
             (group == nullptr || group->getUsers().size() == 1);
    });

    Unit unit(module);
    RuntimeInterface runtime(module);
    const auto plan_one = [&](llvm::Function& function) {
      return plan_function(function, unit, facts, types,
                           analyses.getResult<llvm::TargetLibraryAnalysis>(function));
    };
    const auto instrument = [&](FunctionPlan& plan, const Joinable& joinable) {
      if (!plan.has_records()) return;
      llvm::Function& function = *plan.function;
      const auto& library = analyses.getResult<llvm::TargetLibraryAnalysis>(function);
      std::vector<CopiedLoop> loops = copy_loops(function, plan, unit, library, analyses);
      join_calls(plan, loops, joinable, unit);
      extend_records(plan, loops, unit);
      emit_function(plan, loops, unit, runtime, library);
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
    };
    // What goes into its callers is planned before them and instrumented after them.
    const auto small = std::stable_partition(
        functions.begin(), functions.end(),
        [](const llvm::Function* function) { return !may_be_joined(*function); });
    std::vector<FunctionPlan> small_plans;
    for (auto at = small; at != functions.end(); ++at) small_plans.push_back(plan_one(**at));
    Joinable joinable;
    for (const FunctionPlan& plan : small_plans) joinable.add(plan);
    for (auto at = functions.begin(); at != small; ++at) {
      FunctionPlan plan = plan_one(**at);
      instrument(plan, joinable);
    }
    for (FunctionPlan& plan : small_plans) instrument(plan, joinable);
    plan_sync_calls(facts, unit);
    unit.finish();
    return llvm::PreservedAnalyses::none();
  }
};

}  // namespace
}  // namespace heddle::instrument

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "heddle", "1", [](llvm::PassBuilder& builder) {
            builder.registerPipelineStartEPCallback(
                [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
                  passes.addPass(heddle::instrument::InstrumentPass());
                });
          }};
}
