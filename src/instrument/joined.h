// Calls of small functions that are recorded together with what stands around them.
//
// The problem. A program in C++ calls accessors all the time: `size()`, `row(i)`, `a[i]`. Each call
// is a unit of work and has an Enter and a Leave of its own, so it costs three records, and ends
// the record of the segment in which it stands; the accesses themselves are the least of it.
//
// A function that goes straight from its entry to its return and calls nothing is known when its
// caller is compiled. So its body is copied to where it is called, and one record, a *joined* one
// (abi/abi.h), stands for the segment before the call, the call with its accesses, the segment
// after it, and so on to the end of the block. The trace does not show it: what is described, and
// which events follow, is as if the call had been made.
//
// Order. Between planning and emission, behind the copying of loops: a loop that calls is none that
// is copied.
#pragma once

#include "instrument/loops.h"
#include "instrument/plan.h"
#include "instrument/unit.h"

#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>

namespace heddle::instrument {

// Whether calls of the function may be joined with what stands around them, as far as its code
// says.
bool may_be_joined(const llvm::Function& function);

// The functions of a unit whose calls are. They must not have been instrumented yet.
class Joinable {
 public:
  // If its plan says so, too; `plan` stays where it is.
  void add(const FunctionPlan& plan);
  const FunctionPlan* find(const llvm::Function* function) const { return plans_.lookup(function); }

 private:
  llvm::DenseMap<const llvm::Function*, const FunctionPlan*> plans_;
};

// Changes the plan, and what the records of loops are made of, as far as they refer to calls.
void join_calls(FunctionPlan& plan, std::vector<CopiedLoop>& loops, const Joinable& joinable,
                Unit& unit);

}  // namespace heddle::instrument
