// Which memory provably cannot be shared between threads.
//
// Only three things are left out of the recording: stack slots whose address never leaves the
// function, constants, and thread-local variables. "Never leaves" is decided over the whole
// function, for every offset of the slot, and not only up to the access: a thread may have been
// given the address earlier in a loop.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Value.h>

namespace heddle::instrument {

class Sharing {
 public:
  // The accesses through `address` can be left out.
  bool unshared(const llvm::Value* address);

  // The stack slot, if `address` leads to exactly one and nobody else can know it.
  const llvm::Value* private_slot(const llvm::Value* address);

 private:
  bool stays_here(const llvm::Value* slot);
  bool unshared_object(const llvm::Value* object);

  llvm::DenseMap<const llvm::Value*, bool> stays_here_;
};

}  // namespace heddle::instrument
