// Emission: the inline code that abi/abi.h describes, for one planned function.
//
// The write position lives in a register from block to block: it is read from the thread's
// heddle_tls at the function's start and after every call, and written back at the end of every
// record, so that callees, the runtime and a crash handler find it there.
//
// One comparison with the limit serves as many records as fit into HEDDLE_SEGMENT_WORDS, as long as
// no call stands in between: along a straight piece of control flow, and over branches and joins
// (where the poorer side counts), but not over back edges.
#pragma once

#include "instrument/loops.h"
#include "instrument/plan.h"
#include "instrument/unit.h"

#include <span>

#include <llvm/IR/Module.h>

namespace heddle::instrument {

// What instrumented code refers to in the runtime.
struct RuntimeInterface {
  explicit RuntimeInterface(llvm::Module& module);

  llvm::Module& module;
  llvm::GlobalVariable* tls;
  llvm::FunctionCallee point;
};

// `loops` are those of the function that have copies.
void emit_function(const FunctionPlan& plan, std::span<const CopiedLoop> loops, const Unit& unit,
                   RuntimeInterface& runtime, const llvm::TargetLibraryInfo& library);

}  // namespace heddle::instrument
