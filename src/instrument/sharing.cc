#include "instrument/sharing.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;

class Tracker : public llvm::CaptureTracker {
 public:
  bool captured_anywhere = false;

  void tooManyUses() override { captured_anywhere = true; }
  bool captured(const llvm::Use* use) override {
    if (const auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(use->getUser())) {
      switch (intrinsic->getIntrinsicID()) {
        case llvm::Intrinsic::vastart:
        case llvm::Intrinsic::vaend:
        case llvm::Intrinsic::vacopy:
          return false;
        default:
          break;
      }
    }
    captured_anywhere = true;
    return true;
  }
};

}  // namespace

bool Sharing::stays_here(const llvm::Value* slot) {
  const auto [found, fresh] = stays_here_.try_emplace(slot, false);
  if (fresh) {
    Tracker tracker;
    llvm::PointerMayBeCaptured(slot, &tracker, /*MaxUsesToExplore=*/1000);
    found->second = !tracker.captured_anywhere;
  }
  return found->second;
}

bool Sharing::unshared_object(const llvm::Value* object) {
  if (const auto* global = dyn_cast<llvm::GlobalVariable>(object)) {
    return global->isConstant() || global->isThreadLocal();
  }
  if (const auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(object)) {
    return intrinsic->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
  }
  if (llvm::isa<llvm::AllocaInst>(object)) return stays_here(object);
  if (const auto* argument = dyn_cast<llvm::Argument>(object)) {
    return argument->hasByValAttr() && stays_here(argument);
  }
  return false;
}

bool Sharing::unshared(const llvm::Value* address) {
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(address, objects, nullptr, /*MaxLookup=*/16);
  for (const llvm::Value* object : objects) {
    if (!unshared_object(object)) return false;
  }
  return !objects.empty();
}

const llvm::Value* Sharing::private_slot(const llvm::Value* address) {
  const llvm::Value* object = llvm::getUnderlyingObject(address, /*MaxLookup=*/16);
  return llvm::isa<llvm::AllocaInst>(object) && stays_here(object) ? object : nullptr;
}

}  // namespace heddle::instrument
