// The plan of one function: what is recorded where. Made before anything is changed, so that
// analysis sees the program only; emit.h turns it into code.
//
// A basic block is cut into segments at calls, because a callee records too. A segment's record is
// one header and the addresses of its accesses; a segment without accesses matters to the flow
// level only, and only when something depends on it: a phi, a branch, a call, a result.
#pragma once

#include "instrument/access.h"
#include "instrument/facts.h"
#include "instrument/flow.h"
#include "instrument/function_facts.h"
#include "instrument/unit.h"

#include <cstdint>
#include <vector>

namespace heddle::instrument {

struct PlannedItem {
  Access access;
  SiteId site{};
  LayoutItem layout;
  unsigned word{};        // number of its first word in the record; the header is word 0
  llvm::Value* object{};  // the first of a joined call of a method: goes into the word before

  // Everything but its address is known before it happens.
  bool is_simple() const {
    return layout.source != LayoutItem::Source::kNone && !layout.dynamic_size && !layout.outcome;
  }
};

// One thing to emit, in the order of the block.
struct Step {
  enum class Kind : std::uint8_t {
    kSegment,      // `items`, `slot`, `words`
    kFlowSegment,  // `slot`; before `at`
    kEnter,        // `slot`, `words`
    kLeave,        // `slot`; before `at`
    kResync,       // `slot`; before `at`
    kLibcall,      // `slot`, one item: the scheduling point; before `at`
    kCall,         // `at`: the cursor has moved when it returns; `site`, if it may lead to an Enter
  };
  Kind kind{};
  llvm::Instruction* at{};
  std::uint32_t slot{};
  unsigned words{};  // after the header
  std::vector<PlannedItem> items;
  SiteId site{};  // of a call; 0: none

  // Of a segment, where its record is not its own alone (joined.h, extended.h).
  struct Way {
    llvm::BasicBlock* from{};
    std::uint32_t slot{};
  };
  std::vector<JoinedPart> parts{};  // of the record up to here
  bool goes_on{};                   // takes up the record that has just ended …
  unsigned before{};                // … with so many words behind its header
  std::size_t items_before{};       // the most items that they can be of
  unsigned reserve{};               // words that may follow in the same record
  std::vector<Way> ways{};  // the slot by the way that the block was entered, if that decides
};

struct BlockPlan {
  llvm::BasicBlock* block{};
  std::vector<Step> steps;
};

struct FunctionPlan {
  llvm::Function* function{};
  bool method{};                  // Enter records `this` …
  unsigned object_argument{};     // … which is this argument
  bool frame{};                   // Enter and Resync record a token of the activation
  bool passes_calls{};            // no unit of work: what it calls was called by its caller
  std::vector<BlockPlan> blocks;  // in the function's order

  bool has_records() const;
};

// Adds the function, its sites and its segments to the unit.
FunctionPlan plan_function(llvm::Function& function, Unit& unit, const Facts& facts,
                           const DebugTypes& types, const llvm::TargetLibraryInfo& library);

// Adds a site of kind Acquire with the name of the object for every call that facts.h noted; the
// collector finds it by its place when the runtime reports the call.
void plan_sync_calls(const Facts& facts, Unit& unit);

}  // namespace heddle::instrument
