#include "instrument/debug_types.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/Support/Path.h>

namespace heddle::instrument {
namespace {

namespace dwarf = llvm::dwarf;
using llvm::cast;
using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

bool is_qualifier(unsigned tag) {
  return tag == dwarf::DW_TAG_typedef || tag == dwarf::DW_TAG_const_type ||
         tag == dwarf::DW_TAG_volatile_type || tag == dwarf::DW_TAG_restrict_type ||
         tag == dwarf::DW_TAG_atomic_type;
}

bool is_record(unsigned tag) {
  return tag == dwarf::DW_TAG_structure_type || tag == dwarf::DW_TAG_class_type ||
         tag == dwarf::DW_TAG_union_type;
}

}  // namespace

const llvm::DIType* strip_typedefs(const llvm::DIType* type) {
  while (const auto* derived = dyn_cast_or_null<llvm::DIDerivedType>(type)) {
    if (!is_qualifier(derived->getTag())) break;
    type = derived->getBaseType();
  }
  return type;
}

const llvm::DIType* pointee(const llvm::DIType* type) {
  const auto* derived = dyn_cast_or_null<llvm::DIDerivedType>(strip_typedefs(type));
  if (derived == nullptr) return nullptr;
  switch (derived->getTag()) {
    case dwarf::DW_TAG_pointer_type:
    case dwarf::DW_TAG_reference_type:
    case dwarf::DW_TAG_rvalue_reference_type:
      return derived->getBaseType();
    default:
      return nullptr;
  }
}

bool is_reference(const llvm::DIType* type) {
  const auto* derived = dyn_cast_or_null<llvm::DIDerivedType>(strip_typedefs(type));
  return derived != nullptr && (derived->getTag() == dwarf::DW_TAG_reference_type ||
                                derived->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

const llvm::DICompositeType* as_record(const llvm::DIType* type) {
  const auto* composite = dyn_cast_or_null<llvm::DICompositeType>(strip_typedefs(type));
  return composite != nullptr && is_record(composite->getTag()) ? composite : nullptr;
}

const llvm::DIType* element_type(const llvm::DIType* type) {
  const auto* composite = dyn_cast_or_null<llvm::DICompositeType>(strip_typedefs(type));
  if (composite == nullptr || composite->getTag() != dwarf::DW_TAG_array_type) return nullptr;
  return composite->getBaseType();
}

std::string scope_prefix(const llvm::DIScope* scope) {
  if (scope == nullptr) return {};
  if (const auto* space = dyn_cast<llvm::DINamespace>(scope)) {
    const llvm::StringRef name = space->getName();
    return scope_prefix(space->getScope()) + (name.empty() ? "(anonymous)" : name.str()) + "::";
  }
  if (const auto* record = dyn_cast<llvm::DICompositeType>(scope)) {
    const llvm::StringRef name = record->getName();
    return scope_prefix(record->getScope()) + (name.empty() ? "" : name.str() + "::");
  }
  return {};
}

DebugTypes::DebugTypes(const llvm::Module& module) {
  llvm::DebugInfoFinder finder;
  finder.processModule(module);
  for (const llvm::DIType* type : finder.types()) {
    if (const auto* derived = dyn_cast<llvm::DIDerivedType>(type)) {
      if (derived->getTag() != dwarf::DW_TAG_typedef) continue;
      const auto* named = dyn_cast_or_null<llvm::DICompositeType>(derived->getBaseType());
      if (named != nullptr && named->getName().empty()) typedefs_.try_emplace(named, derived);
      continue;
    }
    const auto* composite = dyn_cast<llvm::DICompositeType>(type);
    if (composite == nullptr || !is_record(composite->getTag()) || composite->isForwardDecl()) {
      continue;
    }
    // The front end leaves template arguments out of the names of struct types.
    llvm::StringRef name = composite->getName().split('<').first;
    by_name_[scope_prefix(composite->getScope()) + name.str()].push_back(composite);
  }
  for (const auto& [record, alias] : typedefs_) {
    by_name_[scope_prefix(alias->getScope()) + alias->getName().str()].push_back(record);
  }
}

std::string DebugTypes::record_name(const llvm::DICompositeType* record) const {
  if (!record->getName().empty()) return scope_prefix(record->getScope()) + record->getName().str();
  if (const auto found = typedefs_.find(record); found != typedefs_.end()) {
    return scope_prefix(found->second->getScope()) + found->second->getName().str();
  }
  return {};
}

const llvm::DICompositeType* DebugTypes::find_record(llvm::StringRef ir_name,
                                                     std::uint64_t bytes) const {
  for (const llvm::StringRef prefix : {"struct.", "class.", "union."}) {
    if (!ir_name.consume_front(prefix)) continue;
    std::string ours = ir_name.str();
    for (std::size_t at = 0; (at = ours.find("(anonymous namespace)", at)) != std::string::npos;) {
      ours.replace(at, 21, "(anonymous)");
    }
    // `struct.S.12` is a second S of the same context; `struct.S.base` is S without tail padding.
    llvm::StringRef name = ours;
    while (true) {
      const auto found = by_name_.find(name);
      if (found != by_name_.end()) {
        for (const llvm::DICompositeType* record : found->second) {
          if (record->getSizeInBits() == bytes * 8) return record;
        }
        return nullptr;
      }
      const auto [head, tail] = name.rsplit('.');
      if (tail.empty() || head.empty() || head == name) return nullptr;
      name = head;
    }
  }
  return nullptr;
}

bool DebugTypes::find_member(const llvm::DICompositeType* record, std::uint64_t offset,
                             Member& out) const {
  const llvm::DICompositeType* named = record;
  std::uint64_t named_offset = offset;
  std::uint64_t left = offset;
  for (unsigned depth = 0; depth < 16; ++depth) {
    const llvm::DIDerivedType* best = nullptr;
    for (const llvm::DINode* node : record->getElements()) {
      const auto* member = dyn_cast_or_null<llvm::DIDerivedType>(node);
      if (member == nullptr || member->isStaticMember()) continue;
      if (member->getTag() != dwarf::DW_TAG_member &&
          member->getTag() != dwarf::DW_TAG_inheritance) {
        continue;
      }
      if (member->isBitField()) continue;
      const std::uint64_t first = member->getOffsetInBits() / 8;
      const llvm::DIType* type = member->getBaseType();
      const std::uint64_t size =
          std::max(member->getSizeInBits(), type != nullptr ? type->getSizeInBits() : 0) / 8;
      if (left < first || left >= first + std::max<std::uint64_t>(size, 1)) continue;
      // A member may lie in the tail padding of a base: the innermost start wins.
      if (best == nullptr || first > best->getOffsetInBits() / 8) best = member;
    }
    if (best == nullptr) return false;
    left -= best->getOffsetInBits() / 8;
    const llvm::DICompositeType* inner = as_record(best->getBaseType());
    const bool base = best->getTag() == dwarf::DW_TAG_inheritance;
    if (inner == nullptr || (!base && !best->getName().empty())) {
      if (best->getName().empty()) return false;
      out = {.declaration = best, .record = named, .offset = named_offset - left, .rest = left};
      return true;
    }
    // A base class or an unnamed struct or union: its members are reached as if they were ours.
    record = inner;
    if (base || !record_name(inner).empty()) {
      named = inner;
      named_offset = left;
    }
  }
  return false;
}

bool DebugTypes::find_bit_field(const llvm::DICompositeType* record, std::uint64_t bit,
                                Member& out) const {
  for (const llvm::DINode* node : record->getElements()) {
    const auto* member = dyn_cast_or_null<llvm::DIDerivedType>(node);
    if (member == nullptr) continue;
    if (member->isBitField()) {
      if (bit < member->getOffsetInBits() ||
          bit >= member->getOffsetInBits() + member->getSizeInBits() || member->getName().empty()) {
        continue;
      }
      out = {.declaration = member, .record = record, .offset = member->getOffsetInBits() / 8};
      return true;
    }
    // Unnamed structs and bases hold bit-fields of ours.
    const llvm::DICompositeType* inner = as_record(member->getBaseType());
    if (inner == nullptr || bit < member->getOffsetInBits()) continue;
    if (member->getTag() != dwarf::DW_TAG_inheritance && !member->getName().empty()) continue;
    const std::uint64_t within = bit - member->getOffsetInBits();
    if (within < inner->getSizeInBits() && find_bit_field(inner, within, out)) {
      if (record_name(inner).empty()) {
        out.record = record;
        out.offset += member->getOffsetInBits() / 8;
      }
      return true;
    }
  }
  return false;
}

std::string file_path(const llvm::DIFile* file) {
  if (file == nullptr) return {};
  llvm::SmallString<256> path(file->getFilename());
  if (!llvm::sys::path::is_absolute(path) && !file->getDirectory().empty()) {
    path = file->getDirectory();
    llvm::sys::path::append(path, file->getFilename());
  }
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return path.str().str();
}

}  // namespace heddle::instrument
