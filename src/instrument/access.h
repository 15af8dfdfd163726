// Accesses: which instructions touch memory that another thread could touch, and how.
#pragma once

#include "instrument/sharing.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Instructions.h>

namespace heddle::instrument {

struct Access {
  llvm::Instruction* instruction{};
  llvm::Value* address{};  // null: a fence
  EventKind kind{};
  MemoryOrder order{MemoryOrder::kPlain};
  MemoryOrder failure_order{MemoryOrder::kPlain};  // of a compare-exchange
  std::uint16_t flags{};                           // Site::Flag
  std::uint64_t bytes{};
  llvm::Value* length{};  // of a range whose length is not constant
  bool always_a_point{};  // atomic or volatile: a scheduling point whatever the site's flag says
  bool has_outcome{};     // a compare-exchange
  bool destination{};     // the second address of a copy, or the only one of a fill
};

// The accesses of one instruction, in the order in which they happen (a copy reads, then writes).
llvm::SmallVector<Access, 2> accesses_of(llvm::Instruction& instruction, Sharing& sharing);

enum class CallKind {
  kNone,  // not a call, or one that can record nothing: intrinsics, arithmetic, inline assembly
  kCall,  // ends a segment
  kRangeOfLibc,  // ends a segment; replaced by the runtime's wrapper, which reports the ranges
};

CallKind call_kind(const llvm::Instruction& instruction, const llvm::TargetLibraryInfo& library,
                   Sharing& sharing);

}  // namespace heddle::instrument
