// The tables of one translation unit: what struct heddle_unit (abi/abi.h) points to.
//
// Functions are instrumented one by one while the tables still grow, so instrumented code refers to
// placeholders, which finish() replaces by the tables at their final size.
#pragma once

#include "abi/abi.h"
#include "abi/layout.h"
#include "trace/catalog.h"

#include <cstdint>
#include <span>
#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>

namespace heddle::instrument {

// Of a joined record: the slot of a segment; or of an Enter, and where its function is called.
struct JoinedPart {
  std::uint32_t slot{};
  SiteId call_site{};  // 0: a segment
};

class Unit {
 public:
  explicit Unit(llvm::Module& module);

  Catalog& catalog() { return catalog_; }
  StringId intern(std::string_view text) { return catalog_.strings.intern(text); }

  // A slot; its number.
  std::uint32_t add_slot(heddle_slot_kind kind, std::uint32_t index, unsigned words);

  // A slot of kind HEDDLE_SLOT_SEGMENT, with its layout.
  std::uint32_t add_segment_slot(std::uint32_t segment, std::span<const LayoutItem> layout);

  // The records of `slots` say as well that the segment of the slot `implied` came right before.
  // False, and nothing is done: they are too far apart.
  bool imply(std::span<const std::uint32_t> slots, std::uint32_t implied);

  // What the slot of a segment stands for.
  const Segment& segment_of(std::uint32_t slot) const {
    return catalog_.segments[slots_[slot].index];
  }

  // A slot of kind HEDDLE_SLOT_JOINED, with its parts; so many words in all.
  std::uint32_t add_joined_slot(unsigned words, std::span<const JoinedPart> parts);

  // A slot of kind HEDDLE_SLOT_LOOP, with its layout.
  std::uint32_t add_loop_slot(const LoopLayout& layout);

  // The number of a variable with static storage, if its address can stand in the symbol table.
  bool symbol(llvm::GlobalVariable* variable, std::uint32_t& number);

  // The same if it has one already: the catalog stays as it is.
  bool known_symbol(llvm::GlobalVariable* variable, std::uint32_t& number) const;

  llvm::Constant* slot_address(std::uint32_t slot) const;
  llvm::Constant* flag_address(SiteId site) const;

  // What the entry of a loop compares its rounds with (abi/abi.h, "loops").
  llvm::Constant* loop_rounds(heddle_loop_kind kind) const;

  // Emits the tables, the constructor that registers them and the destructor that takes them back.
  void finish();

 private:
  static llvm::GlobalVariable* all_loops(llvm::Module& module);
  llvm::GlobalVariable* placeholder(const char* name);
  llvm::GlobalVariable* emit_bytes(const char* name, const char* section,
                                   std::span<const std::uint8_t> bytes);
  llvm::GlobalVariable* section_edge(const char* name);
  void emit_registration(llvm::GlobalVariable* unit);

  llvm::Module& module_;
  llvm::Type* byte_;
  Catalog catalog_;
  LayoutEncoder layout_;
  std::vector<heddle_slot> slots_;
  std::vector<llvm::GlobalVariable*> symbols_;
  llvm::DenseMap<llvm::GlobalVariable*, std::uint32_t> symbol_numbers_;
  llvm::GlobalVariable* slots_placeholder_;
  llvm::GlobalVariable* flags_placeholder_;
  llvm::GlobalVariable* loop_rounds_;
};

}  // namespace heddle::instrument
