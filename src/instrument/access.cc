#include "instrument/access.h"

#include "abi/libc_ranges.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::isa;

MemoryOrder order_of(llvm::AtomicOrdering ordering) {
  switch (ordering) {
    case llvm::AtomicOrdering::NotAtomic:
      return MemoryOrder::kPlain;
    case llvm::AtomicOrdering::Unordered:
    case llvm::AtomicOrdering::Monotonic:
      return MemoryOrder::kRelaxed;
    case llvm::AtomicOrdering::Acquire:
      return MemoryOrder::kAcquire;
    case llvm::AtomicOrdering::Release:
      return MemoryOrder::kRelease;
    case llvm::AtomicOrdering::AcquireRelease:
      return MemoryOrder::kAcqRel;
    case llvm::AtomicOrdering::SequentiallyConsistent:
      return MemoryOrder::kSeqCst;
  }
  return MemoryOrder::kSeqCst;
}

// The guard of a function-local static: the front end tests it inline, with acquire order, before
// it calls __cxa_guard_acquire.
bool is_guard(const llvm::Value* address) {
  const auto* global = dyn_cast<llvm::GlobalVariable>(address);
  return global != nullptr && global->getName().starts_with("_ZGV");
}

// Only order between threads counts; a signal fence orders a thread with itself.
bool within_thread(llvm::SyncScope::ID scope) {
  return scope == llvm::SyncScope::SingleThread;
}

void add_transfer(llvm::AnyMemIntrinsic& intrinsic, Sharing& sharing,
                  llvm::SmallVector<Access, 2>& out) {
  Access access{.instruction = &intrinsic, .flags = Site::kRange};
  if (const auto* length = dyn_cast<llvm::ConstantInt>(intrinsic.getLength())) {
    if (length->isZero()) return;
    access.bytes = length->getZExtValue();
  } else {
    access.length = intrinsic.getLength();
  }
  if (intrinsic.isVolatile()) {
    access.flags |= Site::kVolatile;
    access.always_a_point = true;
  }
  if (auto* copy = dyn_cast<llvm::AnyMemTransferInst>(&intrinsic)) {
    if (!sharing.unshared(copy->getRawSource())) {
      Access read = access;
      read.address = copy->getRawSource();
      read.kind = EventKind::kRead;
      out.push_back(read);
    }
  }
  if (!sharing.unshared(intrinsic.getRawDest())) {
    access.address = intrinsic.getRawDest();
    access.kind = EventKind::kWrite;
    access.destination = true;
    out.push_back(access);
  }
}

}  // namespace

llvm::SmallVector<Access, 2> accesses_of(llvm::Instruction& instruction, Sharing& sharing) {
  const llvm::DataLayout& layout = instruction.getModule()->getDataLayout();
  llvm::SmallVector<Access, 2> out;
  Access access{.instruction = &instruction};
  llvm::Type* type = nullptr;
  if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
    access.address = load->getPointerOperand();
    access.kind =
        is_guard(access.address) && load->isAtomic() ? EventKind::kOncePass : EventKind::kRead;
    access.order =
        within_thread(load->getSyncScopeID()) ? MemoryOrder::kPlain : order_of(load->getOrdering());
    if (load->isVolatile()) access.flags |= Site::kVolatile;
    type = load->getType();
  } else if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
    access.address = store->getPointerOperand();
    access.kind = EventKind::kWrite;
    access.order = within_thread(store->getSyncScopeID()) ? MemoryOrder::kPlain
                                                          : order_of(store->getOrdering());
    if (store->isVolatile()) access.flags |= Site::kVolatile;
    type = store->getValueOperand()->getType();
  } else if (auto* rmw = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    access.address = rmw->getPointerOperand();
    access.kind = EventKind::kRmw;
    access.order = order_of(rmw->getOrdering());
    type = rmw->getType();
  } else if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    access.address = exchange->getPointerOperand();
    access.kind = EventKind::kRmw;
    access.order = order_of(exchange->getSuccessOrdering());
    access.failure_order = order_of(exchange->getFailureOrdering());
    access.has_outcome = true;
    type = exchange->getNewValOperand()->getType();
  } else if (auto* fence = dyn_cast<llvm::FenceInst>(&instruction)) {
    if (within_thread(fence->getSyncScopeID())) return out;
    access.kind = EventKind::kFence;
    access.order = order_of(fence->getOrdering());
    access.always_a_point = true;
    out.push_back(access);
    return out;
  } else if (auto* memory = dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
    add_transfer(*memory, sharing, out);
    return out;
  } else if (auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    // Masked vector accesses count as whole.
    if (intrinsic->getIntrinsicID() == llvm::Intrinsic::masked_load) {
      access.address = intrinsic->getArgOperand(0);
      access.kind = EventKind::kRead;
      type = intrinsic->getType();
    } else if (intrinsic->getIntrinsicID() == llvm::Intrinsic::masked_store) {
      access.address = intrinsic->getArgOperand(1);
      access.kind = EventKind::kWrite;
      type = intrinsic->getArgOperand(0)->getType();
    } else {
      return out;
    }
  } else {
    return out;
  }
  if (access.address->getType()->getPointerAddressSpace() != 0) return out;
  if (sharing.unshared(access.address)) return out;
  const llvm::TypeSize size = layout.getTypeStoreSize(type);
  if (size.isScalable()) return out;
  access.bytes = size;
  if (type->isVectorTy()) access.flags |= Site::kVector;
  access.always_a_point =
      access.order != MemoryOrder::kPlain || (access.flags & Site::kVolatile) != 0;
  out.push_back(access);
  return out;
}

CallKind call_kind(const llvm::Instruction& instruction, const llvm::TargetLibraryInfo& library,
                   Sharing& sharing) {
  const auto* call = dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || call->isInlineAsm()) return CallKind::kNone;
  const llvm::Function* callee = call->getCalledFunction();
  if (callee == nullptr) return CallKind::kCall;
  if (callee->isIntrinsic()) {
    // A coroutine may go on in another thread.
    return callee->getName().starts_with("llvm.coro.suspend") ||
                   callee->getName().starts_with("llvm.coro.resume") ||
                   callee->getName().starts_with("llvm.coro.destroy") ||
                   callee->getName().starts_with("llvm.coro.await.suspend")
               ? CallKind::kCall
               : CallKind::kNone;
  }
  if (!callee->isDeclaration()) return CallKind::kCall;
  if (is_libc_range(callee->getName())) {
    for (const llvm::Use& argument : call->args()) {
      if (argument->getType()->isPointerTy() && !sharing.unshared(argument)) {
        return CallKind::kRangeOfLibc;
      }
    }
    return CallKind::kCall;
  }
  // sin, sqrt and kin.
  llvm::LibFunc known{};
  if (callee->getReturnType()->isFloatingPointTy() && library.getLibFunc(*callee, known)) {
    for (const llvm::Use& argument : call->args()) {
      if (argument->getType()->isPointerTy()) return CallKind::kCall;
    }
    return CallKind::kNone;
  }
  return CallKind::kCall;
}

}  // namespace heddle::instrument
