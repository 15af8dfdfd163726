// Loops that are recorded as a whole (abi/abi.h, "loops").
//
// The problem. An inner loop over an array writes a record in every round, and because of that the
// compiler no longer turns several rounds into one. But what such a loop does is known before it
// runs: how many rounds, where it begins, how far it moves from round to round. So it is copied
// before it is instrumented. At its entry the program chooses: the instrumented loop, or one record
// and the copy, which the compiler sees as it would without us.
//
//     choose:  rounds = …;  if (rounds - HEDDLE_LOOP_FEWEST < loop_rounds) goto record
//              (the loop, instrumented)                    record:  the record; goto copy
//                                                          copy:    the loop, plain
//                                                          finish:  the record is complete
//     exit:    what both have computed, joined
//
// Which loops. An innermost one
//   - of one block, or of two, of which the first tests and the second is the body;
//   - without calls, divisions that may trap, atomic, volatile or range accesses;
//   - whose number of rounds can be computed at its entry;
//   - in which the address of a recorded access is, in round k, first + k·step, both known at the
//     entry; or the copy writes it in every round (it *gathers*; there can only be a few of those).
// A loop that touches no shared memory need not be countable: it writes no record.
//
// A copy that gathers fills a block in some thousand rounds, so its record comes in pieces:
//
//     copy:    …  before such an access: the next word = its address;  …  goto again
//     again:   if (there is room for another round) goto copy
//              the record is complete, of a piece; another one begins;  goto copy
//
// Values that the loop reads again in each round (the begin of a vector, a bound) count as known at
// its entry if alias analysis says that nothing in the loop writes them. The reads are still
// accesses, with step 0.
//
// At the flow level it matters which segments were executed, too. Those of a round follow from the
// record if each has accesses, or is implied by one that has (implied.h). Of another loop, and of
// one that writes no record, the plain version does not run at that level.
//
// Order. Copies are made between planning and emission: the plan describes the program as it was,
// and sites, segments and registers do not depend on which loops have copies. Values that are used
// behind a loop are joined last (join_values), because emission may have added uses.
#pragma once

#include "instrument/plan.h"
#include "instrument/unit.h"

#include <utility>
#include <vector>

#include <llvm/IR/PassManager.h>

namespace heddle::instrument {

struct CopiedLoop {
  std::vector<llvm::BasicBlock*> blocks;  // of the loop that will be instrumented
  std::vector<std::pair<llvm::Instruction*, llvm::Instruction*>> values;  // of it and of the copy

  // The record; nothing of it if no access of the loop is recorded.
  bool recorded{};
  llvm::BasicBlock* record{};  // where it begins …
  llvm::BasicBlock* finish{};  // … and ends
  std::uint32_t slot{};
  llvm::Value* rounds{};
  std::vector<llvm::Value*> words;  // behind the rounds
  unsigned words_per_round{};       // of the instrumented loop, less what the plain one gathers

  // What the copy writes, and where another round of it begins; nothing if it does not gather.
  std::vector<llvm::Instruction*> gathered;  // the accesses whose addresses are written, in order
  unsigned last_words{};                     // how many of them the last round has
  std::uint32_t piece{};                     // the slot of a record that is not the last
  llvm::BasicBlock* again{};
};

std::vector<CopiedLoop> copy_loops(llvm::Function& function, const FunctionPlan& plan, Unit& unit,
                                   const llvm::TargetLibraryInfo& library,
                                   llvm::FunctionAnalysisManager& analyses);

// Behind a loop, a value of it is that of whichever version ran.
void join_values(const CopiedLoop& loop);

}  // namespace heddle::instrument
