// What a person calls the memory that an instruction touches.
//
// The names are only reachable while the front end's own shape of the code is there: an address is
// a chain of loads from named variables and typed member steps. Promotion of locals to registers
// cuts the chain at its roots, and the optimiser later turns member steps into byte offsets. So
// every access is described at the very start of the pipeline, and carries the number of its
// description as metadata until it is instrumented.
#pragma once

#include "instrument/debug_types.h"

#include <cstdint>
#include <string>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

namespace heddle::instrument {

struct AccessFact {
  std::string variable;  // `stock`, `Account.balance`, `table[]`, or empty
  std::string type;      // record of a member access
  std::string field;
  std::uint32_t offset{};  // of the field in its record
  bool bit_field{};
};

// A call that is handed a lock, a condition or the like: the call's place, and what the object is
// called. The runtime sees addresses of such objects only.
struct SyncFact {
  const llvm::DILocation* place{};
  AccessFact object;
};

class Facts {
 public:
  Facts(llvm::Module& module, const DebugTypes& types);

  // Describes every access of `function` and attaches the numbers.
  void attach(llvm::Function& function);

  // The description of an access; `destination` tells the two addresses of a copy apart. Null if
  // there is none.
  const AccessFact* of(const llvm::Instruction& access, bool destination) const;

  const std::vector<SyncFact>& sync_calls() const { return sync_calls_; }

 private:
  // Where an address leads: the type of what is there and how one would name it.
  struct Place {
    const llvm::DIType* type{};
    std::string root;                       // a variable that the address belongs to
    const llvm::DICompositeType* record{};  // innermost record stepped into …
    std::uint64_t record_offset{};          // … and how far into it
    bool element{};                         // an array was indexed after root or record
  };
  static Place typed(const llvm::DIType* type) {
    Place place;
    place.type = type;
    return place;
  }

  Place place_of(const llvm::Value* address, unsigned depth);
  Place step(Place place, const llvm::GEPOperator& gep);
  void enter_record(Place& place, const llvm::DICompositeType* record, std::uint64_t offset) const;
  std::string reference_name(const Place& reference) const;
  AccessFact describe(const llvm::Value* address, std::uint64_t bytes,
                      const llvm::Instruction& access);
  void attach_one(llvm::Instruction& access, const llvm::Value* address, std::uint64_t bytes,
                  unsigned kind);
  void note_sync_call(const llvm::CallBase& call);

  llvm::Module& module_;
  const DebugTypes& types_;
  unsigned kind_;              // metadata kind of the (first) address
  unsigned destination_kind_;  // of the destination of a copy
  llvm::DenseMap<const llvm::Value*, const llvm::DILocalVariable*> locals_;
  std::vector<AccessFact> facts_;
  std::vector<SyncFact> sync_calls_;
  // Of copies, by place and direction: what becomes of one that is cut into loads and stores.
  llvm::DenseMap<std::pair<const llvm::DILocation*, unsigned>, std::size_t> copies_;
};

}  // namespace heddle::instrument
