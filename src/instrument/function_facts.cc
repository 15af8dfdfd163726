#include "instrument/function_facts.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/Path.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::StringRef;

class Hash {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e3779b97f4a7c15ull;
    state_ ^= state_ >> 32;
  }
  void add(StringRef text) {
    std::uint64_t h = 0xcbf29ce484222325ull;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    add(h);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x68656464;
};

bool in_standard_namespace(const llvm::DIScope* scope) {
  for (; scope != nullptr; scope = scope->getScope()) {
    const auto* space = dyn_cast<llvm::DINamespace>(scope);
    if (space == nullptr || dyn_cast_or_null<llvm::DINamespace>(space->getScope()) != nullptr) {
      continue;  // only outermost namespaces decide
    }
    const StringRef name = space->getName();
    if (name == "std" || name == "__gnu_cxx" || name == "__gnu_debug" || name == "__cxxabiv1") {
      return true;
    }
  }
  return false;
}

const llvm::DICompositeType* class_of(const llvm::DISubprogram& program) {
  if (const llvm::DISubprogram* declaration = program.getDeclaration()) {
    if (const auto* record = dyn_cast_or_null<llvm::DICompositeType>(declaration->getScope())) {
      return record;
    }
  }
  return dyn_cast_or_null<llvm::DICompositeType>(program.getScope());
}

MemberAccess access_of(const llvm::DISubprogram& program, const llvm::DICompositeType& record) {
  const llvm::DISubprogram* declaration = program.getDeclaration();
  const auto flags = (declaration != nullptr ? declaration : &program)->getFlags() &
                     llvm::DINode::FlagAccessibility;
  if (flags == llvm::DINode::FlagPublic) return MemberAccess::kPublic;
  if (flags == llvm::DINode::FlagProtected) return MemberAccess::kProtected;
  if (flags == llvm::DINode::FlagPrivate) return MemberAccess::kPrivate;
  // The default carries no flag.
  return record.getTag() == llvm::dwarf::DW_TAG_class_type ? MemberAccess::kPrivate
                                                           : MemberAccess::kPublic;
}

bool has_this(const llvm::DISubprogram& program) {
  if (program.getType() == nullptr) return false;
  const llvm::DITypeRefArray signature = program.getType()->getTypeArray();
  return signature.size() > 1 && signature[1] != nullptr && signature[1]->isObjectPointer();
}

bool is_c(const llvm::DISubprogram& program) {
  const llvm::DICompileUnit* unit = program.getUnit();
  if (unit == nullptr) return false;
  switch (unit->getSourceLanguage()) {
    case llvm::dwarf::DW_LANG_C:
    case llvm::dwarf::DW_LANG_C89:
    case llvm::dwarf::DW_LANG_C99:
    case llvm::dwarf::DW_LANG_C11:
    case llvm::dwarf::DW_LANG_C17:
      return true;
    default:
      return false;
  }
}

// The struct that a C function works on: the one its first pointer to a struct leads to.
const llvm::DICompositeType* first_struct(const llvm::DISubprogram& program) {
  if (program.getType() == nullptr) return nullptr;
  const llvm::DITypeRefArray signature = program.getType()->getTypeArray();
  for (unsigned i = 1; i < signature.size(); ++i) {
    if (const llvm::DICompositeType* record = as_record(pointee(signature[i]))) return record;
  }
  return nullptr;
}

}  // namespace

bool in_system_header(StringRef path) {
  return path.starts_with("/usr/include/") || path.starts_with("/usr/lib/gcc/") ||
         path.starts_with("/usr/lib/llvm-") || path.starts_with("/usr/lib/clang/");
}

bool is_standard(const llvm::Function& function) {
  const llvm::DISubprogram* program = function.getSubprogram();
  if (program == nullptr) {
    const StringRef name = function.getName();
    return name.starts_with("_ZSt") || name.starts_with("_ZNSt") || name.starts_with("_ZNKSt") ||
           name.starts_with("_ZN9__gnu_cxx") || name.starts_with("_ZNK9__gnu_cxx");
  }
  if (in_standard_namespace(program->getScope())) return true;
  if (const llvm::DISubprogram* declaration = program->getDeclaration()) {
    if (in_standard_namespace(declaration->getScope())) return true;
  }
  return in_system_header(file_path(program->getFile()));
}

bool is_structor_shell(const llvm::Function& function) {
  const llvm::DISubprogram* program = function.getSubprogram();
  if (program == nullptr || program->getDeclaration() == nullptr) return false;
  if (!function.getName().starts_with("_ZN")) return false;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
    if (callee == nullptr || callee == &function) continue;
    // The twin may be a declaration without debug information: compare the names up to the variant.
    const StringRef ours = function.getName();
    const StringRef theirs = callee->getName();
    if (ours.size() != theirs.size()) continue;
    for (std::size_t i = 1; i < ours.size(); ++i) {
      if (ours[i] == theirs[i]) continue;
      const char kind = ours[i - 1];
      const bool structor = (kind == 'C' || kind == 'D') && ours[i] >= '0' && ours[i] <= '2' &&
                            theirs[i] >= '0' && theirs[i] <= '2';
      if (structor && ours.substr(i + 1) == theirs.substr(i + 1)) return true;
      break;
    }
  }
  return false;
}

Function describe_function(const llvm::Function& function, const DebugTypes& types,
                           StringTable& strings) {
  Function entry;
  const std::string linkage = function.getName().str();
  entry.linkage_name = strings.intern(linkage);
  entry.name = strings.intern(llvm::demangle(linkage));
  entry.parameters = static_cast<std::uint32_t>(function.arg_size());
  if (function.hasLocalLinkage()) entry.flags |= Function::kStatic;
  if (is_standard(function)) entry.flags |= Function::kStandard;
  entry.key = body_key(function);

  const llvm::DISubprogram* program = function.getSubprogram();
  if (program == nullptr) return entry;
  entry.file = strings.intern(file_path(program->getFile()));
  entry.line = program->getLine();
  if (const llvm::DICompositeType* record = class_of(*program)) {
    entry.class_name = strings.intern(types.record_name(record));
    entry.access = access_of(*program, *record);
    if (has_this(*program)) {
      entry.flags |= Function::kMethod;
      const StringRef name = program->getName().split('<').first;
      if (name == record->getName().split('<').first) entry.flags |= Function::kConstructor;
      if (name.starts_with("~")) entry.flags |= Function::kDestructor;
    }
  } else if (is_c(*program)) {
    if (const llvm::DICompositeType* reached = first_struct(*program)) {
      entry.class_name = strings.intern(types.record_name(reached));
    }
  }
  return entry;
}

std::uint64_t body_key(const llvm::Function& function) {
  Hash hash;
  hash.add(function.getName());
  if (const llvm::DISubprogram* program = function.getSubprogram()) {
    hash.add(llvm::sys::path::filename(program->getFilename()));
  }
  for (const llvm::BasicBlock& block : function) {
    hash.add(block.empty() ? 0 : block.getTerminator()->getNumSuccessors());
    for (const llvm::Instruction& instruction : block) {
      if (llvm::isa<llvm::DbgInfoIntrinsic>(instruction)) continue;
      hash.add(instruction.getOpcode());
      hash.add(instruction.getType()->getTypeID());
      if (const auto* call = dyn_cast<llvm::CallBase>(&instruction)) {
        if (call->getCalledFunction() != nullptr) hash.add(call->getCalledFunction()->getName());
      }
      if (const auto* compare = dyn_cast<llvm::CmpInst>(&instruction)) {
        hash.add(compare->getPredicate());
      }
      if (const auto* gep = dyn_cast<llvm::GEPOperator>(&instruction)) {
        for (const llvm::Value* index : gep->indices()) {
          const auto* constant = dyn_cast<llvm::ConstantInt>(index);
          hash.add(constant != nullptr ? constant->getValue().getLoBits(64).getLimitedValue() : 1);
        }
      }
    }
  }
  return hash.value();
}

}  // namespace heddle::instrument
