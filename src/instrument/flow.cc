#include "instrument/flow.h"

#include <algorithm>

#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::isa;

void sort_unique(std::vector<std::uint32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Flow::Flow(llvm::Function& function, Sharing& sharing)
    : function_(function), sharing_(sharing), next_(static_cast<Register>(function.arg_size())) {
  for (const llvm::Argument& argument : function.args()) {
    registers_[&argument] = argument.getArgNo();
  }
  std::uint32_t number = 0;
  for (const llvm::BasicBlock& block : function) block_numbers_[&block] = number++;
  find_control_parents();
}

Register Flow::define(const llvm::Value* value) {
  registers_[value] = next_;
  return next_++;
}

Register Flow::register_of(const llvm::Value* value) const {
  const auto found = registers_.find(value);
  return found == registers_.end() ? kNoRegister : found->second;
}

Sources Flow::sources(const llvm::Value* value) {
  Visited visited;
  Sources out;
  collect(value, visited, out);
  sort_unique(out);
  return out;
}

Sources Flow::slot_sources(const llvm::Value* slot) {
  Visited visited;
  Sources out;
  collect_slot(slot, visited, out);
  sort_unique(out);
  return out;
}

void Flow::collect(const llvm::Value* value, Visited& visited, Sources& out) {
  llvm::SmallVector<const llvm::Value*, 16> pending{value};
  while (!pending.empty()) {
    const llvm::Value* next = pending.pop_back_val();
    if (const Register known = register_of(next); known != kNoRegister) {
      out.push_back(known);
      continue;
    }
    const auto* instruction = dyn_cast<llvm::Instruction>(next);
    if (instruction == nullptr || isa<llvm::AllocaInst>(instruction)) continue;
    if (!visited.insert(instruction).second) continue;
    if (const auto* load = dyn_cast<llvm::LoadInst>(instruction)) {
      if (const llvm::Value* slot = sharing_.private_slot(load->getPointerOperand())) {
        collect_slot(slot, visited, out);
      }
      pending.push_back(load->getPointerOperand());
      continue;
    }
    const auto* call = dyn_cast<llvm::CallBase>(instruction);
    if (call != nullptr) {
      for (const llvm::Use& argument : call->args()) pending.push_back(argument.get());
    } else {
      for (const llvm::Use& operand : instruction->operands()) pending.push_back(operand.get());
    }
  }
}

void Flow::collect_slot(const llvm::Value* slot, Visited& visited, Sources& out) {
  if (!visited.insert(slot).second) return;
  llvm::SmallVector<const llvm::Value*, 8> addresses{slot};
  Visited seen;
  while (!addresses.empty()) {
    const llvm::Value* address = addresses.pop_back_val();
    if (!seen.insert(address).second) continue;
    for (const llvm::User* user : address->users()) {
      if (const auto* store = dyn_cast<llvm::StoreInst>(user)) {
        if (store->getPointerOperand() != address) continue;
        collect(store->getValueOperand(), visited, out);
        collect(store->getPointerOperand(), visited, out);
      } else if (const auto* copy = dyn_cast<llvm::AnyMemTransferInst>(user)) {
        if (copy->getRawDest() != address) continue;
        if (const Register read = register_of(copy); read != kNoRegister) out.push_back(read);
        if (const llvm::Value* source = sharing_.private_slot(copy->getRawSource())) {
          collect_slot(source, visited, out);
        }
      } else if (const auto* call = dyn_cast<llvm::CallBase>(user)) {
        if (const Register result = register_of(call); result != kNoRegister) {
          out.push_back(result);
        }
      } else if (isa<llvm::GetElementPtrInst>(user) || isa<llvm::CastInst>(user) ||
                 isa<llvm::PHINode>(user) || isa<llvm::SelectInst>(user)) {
        if (user->getType()->isPointerTy()) addresses.push_back(user);
      }
    }
  }
}

const std::vector<std::uint32_t>& Flow::control_parents(const llvm::BasicBlock* block) {
  return control_parents_[block_number(block)];
}

void Flow::find_control_parents() {
  const llvm::PostDominatorTree tree(function_);
  std::vector<std::vector<std::uint32_t>> direct(block_numbers_.size());
  std::vector<bool> is_invoke(block_numbers_.size());
  for (const llvm::BasicBlock& block : function_) {
    const llvm::Instruction* terminator = block.getTerminator();
    if (terminator->getNumSuccessors() < 2) continue;
    is_invoke[block_number(&block)] = isa<llvm::InvokeInst>(terminator);
    const llvm::DomTreeNode* node = tree.getNode(&block);
    const llvm::DomTreeNode* stop = node != nullptr ? node->getIDom() : nullptr;
    for (const llvm::BasicBlock* successor : llvm::successors(&block)) {
      for (const llvm::DomTreeNode* at = tree.getNode(successor);
           at != nullptr && at != stop && at->getBlock() != nullptr; at = at->getIDom()) {
        direct[block_number(at->getBlock())].push_back(block_number(&block));
      }
    }
  }
  control_parents_.resize(direct.size());
  for (std::uint32_t block = 0; block < direct.size(); ++block) {
    std::vector<bool> seen(direct.size());
    llvm::SmallVector<std::uint32_t, 8> pending(direct[block].begin(), direct[block].end());
    while (!pending.empty()) {
      const std::uint32_t parent = pending.pop_back_val();
      if (seen[parent]) continue;
      seen[parent] = true;
      if (!is_invoke[parent]) {
        control_parents_[block].push_back(parent);
        continue;
      }
      pending.append(direct[parent].begin(), direct[parent].end());
    }
    sort_unique(control_parents_[block]);
  }
}

}  // namespace heddle::instrument
