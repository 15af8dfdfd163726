#include "instrument/facts.h"

#include "instrument/function_facts.h"

#include <optional>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

namespace heddle::instrument {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

constexpr unsigned kDepth = 24;  // of the chain of loads and steps behind an address

const llvm::ConstantInt* constant_operand(const llvm::Value* value, unsigned opcode,
                                          const llvm::Value*& other) {
  const auto* instruction = dyn_cast<llvm::BinaryOperator>(value);
  if (instruction == nullptr || instruction->getOpcode() != opcode) return nullptr;
  other = instruction->getOperand(0);
  return dyn_cast<llvm::ConstantInt>(instruction->getOperand(1));
}

// First bit that `keep` clears: where a bit-field that is being replaced starts.
std::optional<unsigned> first_cleared(const llvm::APInt& keep) {
  const llvm::APInt cleared = ~keep;
  if (cleared.isZero()) return std::nullopt;
  return cleared.countr_zero();
}

// The front end writes a bit-field as (unit & ~mask) | (value << first).
std::optional<unsigned> first_bit_stored(const llvm::Value* stored) {
  const auto* both = dyn_cast<llvm::BinaryOperator>(stored);
  if (both == nullptr || both->getOpcode() != llvm::Instruction::Or) return std::nullopt;
  for (const llvm::Value* side : both->operands()) {
    const llvm::Value* unit = nullptr;
    const llvm::ConstantInt* keep = constant_operand(side, llvm::Instruction::And, unit);
    if (keep != nullptr && isa<llvm::LoadInst>(unit)) return first_cleared(keep->getValue());
  }
  return std::nullopt;
}

// … and reads it as (unit >> first) & mask, or, when signed, as (unit << above) >> (above + first).
std::optional<unsigned> first_bit_loaded(const llvm::LoadInst& load) {
  for (const llvm::User* user : load.users()) {
    const llvm::Value* unit = nullptr;
    if (const auto* shift = constant_operand(user, llvm::Instruction::LShr, unit)) {
      return shift->getZExtValue();
    }
    if (const auto* shift = constant_operand(user, llvm::Instruction::AShr, unit)) {
      return shift->getZExtValue();
    }
    if (const auto* up = constant_operand(user, llvm::Instruction::Shl, unit)) {
      for (const llvm::User* next : user->users()) {
        const auto* down = constant_operand(next, llvm::Instruction::AShr, unit);
        if (down != nullptr) return down->getZExtValue() - up->getZExtValue();
      }
    }
    if (const auto* mask = constant_operand(user, llvm::Instruction::And, unit)) {
      for (const llvm::User* next : user->users()) {
        if (isa<llvm::BinaryOperator>(next) &&
            cast<llvm::BinaryOperator>(next)->getOpcode() == llvm::Instruction::Or) {
          return first_cleared(mask->getValue());
        }
      }
      return mask->getValue().countr_zero();
    }
  }
  return std::nullopt;
}

// std::mutex, pthread_rwlock_t, sem_t …: told by the name, since each library has its own.
bool is_sync_type(const llvm::DIType* type) {
  static constexpr llvm::StringRef kWords[] = {"mutex",     "rwlock", "spinlock", "cond",  "sem_t",
                                               "semaphore", "latch",  "barrier",  "mtx_t", "cnd_t"};
  while (type != nullptr) {
    const std::string name = type->getName().split('<').first.lower();  // no lock_guard<mutex>
    for (const llvm::StringRef word : kWords) {
      if (llvm::StringRef(name).contains(word)) return true;
    }
    const auto* derived = dyn_cast<llvm::DIDerivedType>(type);
    if (derived == nullptr || derived->getTag() == llvm::dwarf::DW_TAG_pointer_type) return false;
    type = derived->getBaseType();
  }
  return false;
}

}  // namespace

Facts::Facts(llvm::Module& module, const DebugTypes& types)
    : module_(module),
      types_(types),
      kind_(module.getContext().getMDKindID("heddle.fact")),
      destination_kind_(module.getContext().getMDKindID("heddle.destination")) {}

void Facts::enter_record(Place& place, const llvm::DICompositeType* record,
                         std::uint64_t offset) const {
  Member member;
  place.element = false;
  if (types_.find_member(record, offset, member)) {
    place.record = member.record;
    place.record_offset = member.offset;
    place.type = member.declaration->getBaseType();
    // Into an array member, or somewhere that only a cast can reach.
    if (member.rest != 0 && element_type(place.type) != nullptr) {
      place.type = element_type(place.type);
      place.element = true;
    }
    return;
  }
  place.record = record;
  place.record_offset = offset;
  place.type = nullptr;
}

Facts::Place Facts::step(Place place, const llvm::GEPOperator& gep) {
  const llvm::DataLayout& layout = module_.getDataLayout();
  bool first = true;
  for (auto at = llvm::gep_type_begin(gep), end = llvm::gep_type_end(gep); at != end; ++at) {
    if (llvm::StructType* type = at.getStructTypeOrNull()) {
      const auto number =
          static_cast<unsigned>(cast<llvm::ConstantInt>(at.getOperand())->getZExtValue());
      const std::uint64_t offset = layout.getStructLayout(type)->getElementOffset(number);
      const llvm::DICompositeType* record = as_record(place.type);
      const std::uint64_t bytes = layout.getTypeAllocSize(type);
      if (type->hasName() && (record == nullptr || record->getSizeInBits() != bytes * 8)) {
        if (const auto* named = types_.find_record(type->getName(), bytes)) record = named;
      }
      if (record == nullptr) {
        place.type = nullptr;
        place.record = nullptr;
      } else {
        enter_record(place, record, offset);
      }
    } else if (first) {
      // Pointer arithmetic: a neighbour in an array of the same type, or, in bytes, a member.
      const auto* constant = dyn_cast<llvm::ConstantInt>(at.getOperand());
      const bool nowhere = constant != nullptr && constant->isZero();
      const llvm::DICompositeType* record = as_record(place.type);
      if (!nowhere && constant != nullptr && record != nullptr &&
          gep.getSourceElementType()->isIntegerTy(8) && !constant->isNegative()) {
        enter_record(place, record, constant->getZExtValue());
      } else if (!nowhere) {
        if (const llvm::DIType* element = element_type(place.type)) place.type = element;
        place.element = true;
      }
    } else {
      if (const llvm::DIType* element = element_type(place.type)) place.type = element;
      place.element = true;
    }
    first = false;
  }
  return place;
}

Facts::Place Facts::place_of(const llvm::Value* address, unsigned depth) {
  if (depth > kDepth) return {};
  if (const auto found = locals_.find(address); found != locals_.end()) {
    Place place = typed(found->second->getType());
    place.root = found->second->getName().str();
    return place;
  }
  if (const auto* global = dyn_cast<llvm::GlobalVariable>(address)) {
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> found;
    global->getDebugInfo(found);
    Place place;
    if (!found.empty()) {
      const llvm::DIGlobalVariable* variable = found.front()->getVariable();
      place.type = variable->getType();
      place.root = scope_prefix(variable->getScope()) + variable->getName().str();
      // A static data member is defined under its class.
      if (const llvm::DIDerivedType* member = variable->getStaticDataMemberDeclaration()) {
        place.root = scope_prefix(member->getScope()) + member->getName().str();
      }
    } else if (!global->hasPrivateLinkage()) {
      place.root = global->getName().str();
    }
    return place;
  }
  if (const auto* gep = dyn_cast<llvm::GEPOperator>(address)) {
    return step(place_of(gep->getPointerOperand(), depth + 1), *gep);
  }
  if (const auto* load = dyn_cast<llvm::LoadInst>(address)) {
    Place place = place_of(load->getPointerOperand(), depth + 1);
    // The first member of a record needs no step.
    while (const llvm::DICompositeType* record = as_record(place.type)) {
      if (record->getElements().empty()) break;
      enter_record(place, record, 0);
    }
    Place there = typed(pointee(place.type));
    // A reference is called what it stands for: a lambda's captures have their variables' names.
    if (is_reference(place.type)) there.root = reference_name(place);
    return there;
  }
  if (const auto* call = dyn_cast<llvm::CallBase>(address)) {
    if (const auto* local = dyn_cast<llvm::IntrinsicInst>(call);
        local != nullptr && local->getIntrinsicID() == llvm::Intrinsic::threadlocal_address) {
      return place_of(local->getArgOperand(0), depth + 1);
    }
    const llvm::Function* callee = call->getCalledFunction();
    const llvm::DISubprogram* program = callee != nullptr ? callee->getSubprogram() : nullptr;
    if (program == nullptr || program->getType() == nullptr) return {};
    const llvm::DITypeRefArray signature = program->getType()->getTypeArray();
    return typed(signature.size() > 0 ? pointee(signature[0]) : nullptr);
  }
  if (const auto* phi = dyn_cast<llvm::PHINode>(address)) {
    return phi->getNumIncomingValues() == 0 ? Place{}
                                            : place_of(phi->getIncomingValue(0), depth + 8);
  }
  if (const auto* choice = dyn_cast<llvm::SelectInst>(address)) {
    return place_of(choice->getTrueValue(), depth + 8);
  }
  if (const auto* cast_op = dyn_cast<llvm::BitCastOperator>(address)) {
    return place_of(cast_op->getOperand(0), depth + 1);
  }
  return {};
}

// The library's own parameters (`__x`) say nothing to anybody.
std::string Facts::reference_name(const Place& reference) const {
  if (reference.element) return {};
  std::string name = reference.root;
  if (reference.record != nullptr) {
    Member member;
    if (!types_.find_member(reference.record, reference.record_offset, member)) return {};
    name = member.declaration->getName().str();
  }
  return name.starts_with("__") ? std::string() : name;
}

AccessFact Facts::describe(const llvm::Value* address, std::uint64_t bytes,
                           const llvm::Instruction& access) {
  Place place = place_of(address, 0);
  for (unsigned depth = 0; depth < 8; ++depth) {
    const llvm::DICompositeType* record = as_record(place.type);
    if (record == nullptr || bytes == 0 || record->getSizeInBits() <= bytes * 8) break;
    if (record->getElements().empty()) break;
    enter_record(place, record, 0);
  }
  if (bytes != 0 && element_type(place.type) != nullptr &&
      place.type->getSizeInBits() > bytes * 8) {
    place.element = true;  // the first element of an array needs no step either
  }

  AccessFact fact;
  const char* index = place.element ? "[]" : "";
  if (place.record == nullptr) {
    if (!place.root.empty()) fact.variable = place.root + index;
    return fact;
  }
  Member member;
  std::string field;
  if (place.type == nullptr) {
    std::optional<unsigned> bit;
    if (const auto* store = dyn_cast<llvm::StoreInst>(&access)) {
      bit = first_bit_stored(store->getValueOperand());
    } else if (const auto* load = dyn_cast<llvm::LoadInst>(&access)) {
      bit = first_bit_loaded(*load);
    }
    if (types_.find_bit_field(place.record, place.record_offset * 8 + bit.value_or(0), member)) {
      field = member.declaration->getName().str();
      fact.bit_field = true;
      place.record = member.record;
      place.record_offset = member.offset;
    }
  } else if (types_.find_member(place.record, place.record_offset, member)) {
    field = member.declaration->getName().str();
  }
  fact.type = types_.record_name(place.record);
  fact.field = field;
  fact.offset = static_cast<std::uint32_t>(place.record_offset);
  if (!field.empty()) {
    const std::string owner = !fact.type.empty() ? fact.type : place.root;
    fact.variable = (owner.empty() ? field : owner + "." + field) + index;
  } else {
    fact.variable = place.root;
  }
  return fact;
}

void Facts::attach_one(llvm::Instruction& access, const llvm::Value* address, std::uint64_t bytes,
                       unsigned kind) {
  AccessFact fact = describe(address, bytes, access);
  if (fact.variable.empty() && fact.type.empty()) return;
  llvm::LLVMContext& context = module_.getContext();
  auto* number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), facts_.size());
  access.setMetadata(kind, llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(number)));
  facts_.push_back(std::move(fact));
}

void Facts::note_sync_call(const llvm::CallBase& call) {
  const llvm::DILocation* place = call.getDebugLoc().get();
  if (place == nullptr || isa<llvm::IntrinsicInst>(call)) return;
  for (const llvm::Use& argument : call.args()) {
    if (!argument->getType()->isPointerTy() || !is_sync_type(place_of(argument.get(), 0).type)) {
      continue;
    }
    AccessFact object = describe(argument.get(), 0, call);
    if (!object.variable.empty()) sync_calls_.push_back({place, std::move(object)});
  }
}

void Facts::attach(llvm::Function& function) {
  locals_.clear();
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    for (llvm::DbgVariableRecord& record : llvm::filterDbgVars(instruction.getDbgRecordRange())) {
      // With optimisation the front end's declarations have become tracked assignments by now.
      const bool whole =
          record.isDbgDeclare() ||
          (record.isDbgAssign() && !record.getExpression()->getFragmentInfo().has_value());
      if (whole && record.getAddress() != nullptr) {
        locals_.try_emplace(record.getAddress(), record.getVariable());
      }
    }
    if (const auto* declare = dyn_cast<llvm::DbgDeclareInst>(&instruction)) {
      if (declare->getAddress() != nullptr) {
        locals_.try_emplace(declare->getAddress(), declare->getVariable());
      }
    }
  }
  const llvm::DataLayout& layout = module_.getDataLayout();
  const bool is_users = !is_standard(function);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (const auto* call = dyn_cast<llvm::CallBase>(&instruction); call != nullptr && is_users) {
      note_sync_call(*call);
    }
    if (const auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
      if (isa<llvm::AllocaInst>(load->getPointerOperand()) && load->getType()->isPointerTy()) {
        continue;  // a pointer variable on its way to being a register
      }
      attach_one(instruction, load->getPointerOperand(), layout.getTypeStoreSize(load->getType()),
                 kind_);
    } else if (const auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
      attach_one(instruction, store->getPointerOperand(),
                 layout.getTypeStoreSize(store->getValueOperand()->getType()), kind_);
    } else if (const auto* rmw = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
      attach_one(instruction, rmw->getPointerOperand(), layout.getTypeStoreSize(rmw->getType()),
                 kind_);
    } else if (const auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
      attach_one(instruction, exchange->getPointerOperand(),
                 layout.getTypeStoreSize(exchange->getNewValOperand()->getType()), kind_);
    } else if (const auto* copy = dyn_cast<llvm::AnyMemTransferInst>(&instruction)) {
      const auto* length = dyn_cast<llvm::ConstantInt>(copy->getLength());
      const std::uint64_t bytes = length != nullptr ? length->getZExtValue() : 0;
      const llvm::DILocation* place = instruction.getDebugLoc().get();
      attach_one(instruction, copy->getRawSource(), bytes, kind_);
      if (place != nullptr && instruction.hasMetadata(kind_))
        copies_[{place, 0}] = facts_.size() - 1;
      attach_one(instruction, copy->getRawDest(), bytes, destination_kind_);
      if (place != nullptr && instruction.hasMetadata(destination_kind_))
        copies_[{place, 1}] = facts_.size() - 1;
    } else if (const auto* fill = dyn_cast<llvm::AnyMemSetInst>(&instruction)) {
      const auto* length = dyn_cast<llvm::ConstantInt>(fill->getLength());
      attach_one(instruction, fill->getRawDest(), length != nullptr ? length->getZExtValue() : 0,
                 destination_kind_);
    }
  }
}

const AccessFact* Facts::of(const llvm::Instruction& access, bool destination) const {
  const llvm::MDNode* node = access.getMetadata(destination ? destination_kind_ : kind_);
  if (node == nullptr) {
    if (!isa<llvm::LoadInst, llvm::StoreInst>(access) || !access.getDebugLoc()) return nullptr;
    const unsigned direction = isa<llvm::StoreInst>(access) ? 1 : 0;
    const auto copy = copies_.find({access.getDebugLoc().get(), direction});
    return copy != copies_.end() ? &facts_[copy->second] : nullptr;
  }
  const auto* number = llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0));
  return &facts_[number->getZExtValue()];
}

}  // namespace heddle::instrument
