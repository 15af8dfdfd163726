// Function facts: who a function is to the person who wrote it, and whether calls of it are units
// of work.
#pragma once

#include "instrument/debug_types.h"
#include "trace/catalog.h"

#include <llvm/IR/Function.h>

namespace heddle::instrument {

// Of the standard library: its templates are compiled with the program, but are nobody's units.
bool is_standard(const llvm::Function& function);

bool in_system_header(llvm::StringRef path);

// A complete-object constructor or destructor that only calls its base-object twin, or a deleting
// destructor: not a call that a person wrote.
bool is_structor_shell(const llvm::Function& function);

// Fills a catalog entry. `function` is already cleaned up (no dead blocks, locals in registers),
// and not instrumented yet.
Function describe_function(const llvm::Function& function, const DebugTypes& types,
                           StringTable& strings);

// Linkage name, file name and the shape of the body: operations, callees, member numbers; no line
// numbers and no names of values.
std::uint64_t body_key(const llvm::Function& function);

}  // namespace heddle::instrument
