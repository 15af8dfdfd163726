// Names from debug information: what a type, a member and a function are called by the person who
// wrote them. The IR has struct types and field numbers only; the names live in the DI graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>

namespace heddle::instrument {

// Typedefs and cv-qualifiers taken off.
const llvm::DIType* strip_typedefs(const llvm::DIType* type);

// What a pointer or reference points to; null when `type` is neither.
const llvm::DIType* pointee(const llvm::DIType* type);

bool is_reference(const llvm::DIType* type);

// A struct, class or union; null otherwise.
const llvm::DICompositeType* as_record(const llvm::DIType* type);

// The element type of an array type; null otherwise.
const llvm::DIType* element_type(const llvm::DIType* type);

// ns::Outer, followed by "::" when not empty.
std::string scope_prefix(const llvm::DIScope* scope);

struct Member {
  const llvm::DIDerivedType* declaration{};  // the innermost named member
  const llvm::DICompositeType* record{};     // the innermost record with a name that holds it
  std::uint64_t offset{};                    // bytes from the start of `record`
  std::uint64_t rest{};                      // bytes from the start of the member
};

class DebugTypes {
 public:
  explicit DebugTypes(const llvm::Module& module);

  // As the source says it: `bank::Account`; an unnamed struct has its typedef's name; "" if none.
  std::string record_name(const llvm::DICompositeType* record) const;

  // The record that the front end called `struct.S`, `class.ns::C`, `union.U`, if its size fits.
  const llvm::DICompositeType* find_record(llvm::StringRef ir_name, std::uint64_t bytes) const;

  // The member of `record` at byte `offset`; steps into unnamed members, bases stay what they are.
  bool find_member(const llvm::DICompositeType* record, std::uint64_t offset, Member& out) const;

  // The bit-field of `record` whose first bit is `bit`.
  bool find_bit_field(const llvm::DICompositeType* record, std::uint64_t bit, Member& out) const;

 private:
  llvm::StringMap<std::vector<const llvm::DICompositeType*>> by_name_;
  llvm::DenseMap<const llvm::DICompositeType*, const llvm::DIDerivedType*> typedefs_;
};

// An absolute path where the debug information has one.
std::string file_path(const llvm::DIFile* file);

}  // namespace heddle::instrument
