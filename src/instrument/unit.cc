#include "instrument/unit.h"

#include "instrument/debug_types.h"
#include "trace/catalog_codec.h"

#include <algorithm>

#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace heddle::instrument {

using llvm::ConstantInt;
using llvm::GlobalValue;
using llvm::GlobalVariable;

Unit::Unit(llvm::Module& module)
    : module_(module),
      byte_(llvm::Type::getInt8Ty(module.getContext())),
      slots_placeholder_(placeholder("heddle.slots.placeholder")),
      flags_placeholder_(placeholder("heddle.flags.placeholder")),
      loop_rounds_(all_loops(module)) {}

GlobalVariable* Unit::all_loops(llvm::Module& module) {
  const std::vector<std::uint64_t> all(HEDDLE_LOOP_KINDS, HEDDLE_LOOP_MOST);
  llvm::Constant* most = llvm::ConstantDataArray::get(module.getContext(), all);
  return new GlobalVariable(module, most->getType(), /*isConstant=*/false,
                            GlobalValue::PrivateLinkage, most, "heddle.loop_rounds");
}

llvm::Constant* Unit::loop_rounds(heddle_loop_kind kind) const {
  llvm::Type* word = llvm::Type::getInt64Ty(module_.getContext());
  return llvm::ConstantExpr::getInBoundsGetElementPtr(word, loop_rounds_,
                                                      ConstantInt::get(word, kind));
}

GlobalVariable* Unit::placeholder(const char* name) {
  auto* variable = new GlobalVariable(module_, byte_, /*isConstant=*/false,
                                      GlobalValue::ExternalLinkage, nullptr, name);
  variable->setDSOLocal(true);
  return variable;
}

std::uint32_t Unit::add_slot(heddle_slot_kind kind, std::uint32_t index, unsigned words) {
  slots_.push_back({.index = index,
                    .kind = static_cast<std::uint8_t>(kind),
                    .words = static_cast<std::uint8_t>(words),
                    .before = 0});
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

std::uint32_t Unit::add_segment_slot(std::uint32_t segment, std::span<const LayoutItem> layout) {
  unsigned words = 0;
  for (const LayoutItem& item : layout) words += item.words();
  layout_.add(layout);
  return add_slot(HEDDLE_SLOT_SEGMENT, segment, words);
}

bool Unit::imply(std::span<const std::uint32_t> slots, std::uint32_t implied) {
  const auto distance = [&](std::uint32_t slot) { return std::int64_t{implied} - slot; };
  const auto is_near = [&](std::uint32_t slot) {
    return static_cast<std::int16_t>(distance(slot)) == distance(slot);
  };
  if (!std::all_of(slots.begin(), slots.end(), is_near)) return false;
  for (const std::uint32_t slot : slots)
    slots_[slot].before = static_cast<std::int16_t>(distance(slot));
  return true;
}

std::uint32_t Unit::add_joined_slot(unsigned words, std::span<const JoinedPart> parts) {
  const std::uint32_t slot = add_slot(HEDDLE_SLOT_JOINED, 0, words);
  for (const JoinedPart& part : parts) {
    if (part.call_site == 0) {
      add_slot(HEDDLE_SLOT_PART, part.slot, 0);
    } else {
      add_slot(HEDDLE_SLOT_CALL_PART, part.slot, 0);
      add_slot(HEDDLE_SLOT_CALL_SITE, part.call_site, 0);
    }
  }
  slots_[slot].index = static_cast<std::uint32_t>(slots_.size() - slot - 1);
  return slot;
}

std::uint32_t Unit::add_loop_slot(const LoopLayout& layout) {
  const std::uint32_t number = layout_.loop_count();
  layout_.add(layout);
  const std::uint32_t slot = add_slot(HEDDLE_SLOT_LOOP, number, layout.words());
  slots_[slot].round_words = static_cast<std::uint16_t>(layout.round_words());
  return slot;
}

bool Unit::symbol(GlobalVariable* variable, std::uint32_t& number) {
  // A declaration may have no definition when all its uses are dead code; a local variable of a
  // comdat group may be thrown away with the group. The table must not keep either alive.
  if (variable->isDeclaration() || variable->hasAvailableExternallyLinkage()) return false;
  if (variable->hasComdat() && variable->hasLocalLinkage()) return false;
  if (variable->isThreadLocal() || variable->getAddressSpace() != 0) return false;
  const auto [found, fresh] =
      symbol_numbers_.try_emplace(variable, static_cast<std::uint32_t>(symbols_.size()));
  number = found->second;
  if (!fresh) return true;
  symbols_.push_back(variable);
  Symbol entry;
  entry.name = intern(variable->getName().str());
  entry.size = module_.getDataLayout().getTypeAllocSize(variable->getValueType());
  llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
  variable->getDebugInfo(described);
  if (!described.empty()) {
    const llvm::DIGlobalVariable* source = described.front()->getVariable();
    entry.name = intern(scope_prefix(source->getScope()) + source->getName().str());
    if (const llvm::DIDerivedType* member = source->getStaticDataMemberDeclaration()) {
      entry.name = intern(scope_prefix(member->getScope()) + member->getName().str());
    }
    entry.file = intern(file_path(source->getFile()));
    entry.line = source->getLine();
  }
  catalog_.symbols.push_back(entry);
  return true;
}

bool Unit::known_symbol(GlobalVariable* variable, std::uint32_t& number) const {
  const auto found = symbol_numbers_.find(variable);
  if (found == symbol_numbers_.end()) return false;
  number = found->second;
  return true;
}

llvm::Constant* Unit::slot_address(std::uint32_t slot) const {
  auto* offset = ConstantInt::get(llvm::Type::getInt64Ty(module_.getContext()),
                                  std::uint64_t{slot} * sizeof(heddle_slot));
  return llvm::ConstantExpr::getInBoundsGetElementPtr(byte_, slots_placeholder_, offset);
}

llvm::Constant* Unit::flag_address(SiteId site) const {
  auto* offset = ConstantInt::get(llvm::Type::getInt64Ty(module_.getContext()), site);
  return llvm::ConstantExpr::getInBoundsGetElementPtr(byte_, flags_placeholder_, offset);
}

GlobalVariable* Unit::emit_bytes(const char* name, const char* section,
                                 std::span<const std::uint8_t> bytes) {
  llvm::Constant* content = llvm::ConstantDataArray::get(
      module_.getContext(), llvm::ArrayRef(bytes.data(), bytes.size()));
  auto* variable = new GlobalVariable(module_, content->getType(), /*isConstant=*/true,
                                      GlobalValue::PrivateLinkage, content, name);
  variable->setAlignment(llvm::Align(8));
  if (section != nullptr) variable->setSection(section);
  return variable;
}

// Where a section of the module that this unit becomes part of begins or ends: the linker knows.
// Null when it has no such section.
GlobalVariable* Unit::section_edge(const char* name) {
  if (GlobalVariable* known = module_.getGlobalVariable(name)) return known;
  auto* edge = new GlobalVariable(module_, byte_, /*isConstant=*/true,
                                  GlobalValue::ExternalWeakLinkage, nullptr, name);
  edge->setVisibility(GlobalValue::HiddenVisibility);
  return edge;
}

void Unit::finish() {
  if (slots_.empty()) {
    slots_placeholder_->eraseFromParent();
    flags_placeholder_->eraseFromParent();
    loop_rounds_->eraseFromParent();
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* half = llvm::Type::getInt32Ty(context);
  llvm::PointerType* pointer = llvm::PointerType::get(context, 0);

  auto* slots = emit_bytes(
      "heddle.slots", nullptr,
      {reinterpret_cast<const std::uint8_t*>(slots_.data()), slots_.size() * sizeof(heddle_slot)});
  slots_placeholder_->replaceAllUsesWith(slots);
  slots_placeholder_->eraseFromParent();

  auto* flags_type = llvm::ArrayType::get(byte_, catalog_.sites.size());
  auto* flags =
      new GlobalVariable(module_, flags_type, /*isConstant=*/false, GlobalValue::PrivateLinkage,
                         llvm::ConstantAggregateZero::get(flags_type), "heddle.flags");
  flags_placeholder_->replaceAllUsesWith(flags);
  flags_placeholder_->eraseFromParent();

  std::vector<llvm::Constant*> addresses(symbols_.begin(), symbols_.end());
  auto* symbols_type = llvm::ArrayType::get(pointer, addresses.size());
  auto* symbols =
      new GlobalVariable(module_, symbols_type, /*isConstant=*/true, GlobalValue::PrivateLinkage,
                         llvm::ConstantArray::get(symbols_type, addresses), "heddle.symbols");

  // The section holds, for each unit, magic, length of the catalog and of the layout, then both,
  // each padded to 8: `heddle descriptors` reads it from objects and executables.
  const std::vector<std::uint8_t> catalog = encode_catalog(catalog_);
  const std::string layout = layout_.blob();
  std::vector<std::uint8_t> section(sizeof(heddle_section_header));
  const heddle_section_header header{
      .magic = HEDDLE_SECTION_MAGIC, .catalog_size = catalog.size(), .layout_size = layout.size()};
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&header), sizeof(header), section.begin());
  const std::uint64_t catalog_at = section.size();
  section.insert(section.end(), catalog.begin(), catalog.end());
  section.resize((section.size() + 7) & ~std::size_t{7});
  const std::uint64_t layout_at = section.size();
  section.insert(section.end(), layout.begin(), layout.end());
  section.resize((section.size() + 7) & ~std::size_t{7});
  auto* blob = emit_bytes("heddle.catalog", HEDDLE_SECTION, section);
  const auto inside = [&](std::uint64_t offset) {
    return llvm::ConstantExpr::getInBoundsGetElementPtr(byte_, blob,
                                                        ConstantInt::get(word, offset));
  };

  const std::string& source = module_.getSourceFileName();
  auto* name =
      emit_bytes("heddle.name", nullptr,
                 {reinterpret_cast<const std::uint8_t*>(source.c_str()), source.size() + 1});

  llvm::StructType* type =
      llvm::StructType::get(context, {half,    half,    pointer, word,    pointer, word,    pointer,
                                      word,    pointer, word,    pointer, word,    pointer, pointer,
                                      pointer, pointer, pointer, pointer, pointer, pointer});
  llvm::Constant* fields[] = {ConstantInt::get(half, HEDDLE_ABI_VERSION),
                              ConstantInt::get(half, 0),
                              slots,
                              ConstantInt::get(word, slots_.size()),
                              inside(catalog_at),
                              ConstantInt::get(word, catalog.size()),
                              inside(layout_at),
                              ConstantInt::get(word, layout.size()),
                              symbols,
                              ConstantInt::get(word, symbols_.size()),
                              flags,
                              ConstantInt::get(word, catalog_.sites.size()),
                              name,
                              section_edge("__start_" HEDDLE_POINTS_SECTION),
                              section_edge("__stop_" HEDDLE_POINTS_SECTION),
                              section_edge("__start_" HEDDLE_FLOWS_SECTION),
                              section_edge("__stop_" HEDDLE_FLOWS_SECTION),
                              section_edge("__start_" HEDDLE_WORDS_SECTION),
                              section_edge("__stop_" HEDDLE_WORDS_SECTION),
                              loop_rounds_};
  auto* unit = new GlobalVariable(module_, type, /*isConstant=*/true, GlobalValue::PrivateLinkage,
                                  llvm::ConstantStruct::get(type, fields), "heddle.unit");
  emit_registration(unit);
}

void Unit::emit_registration(GlobalVariable* unit) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  const auto emit = [&](const char* name, const char* callee) {
    llvm::FunctionCallee target =
        module_.getOrInsertFunction(callee, nothing, llvm::PointerType::get(context, 0));
    auto* function = llvm::Function::Create(llvm::FunctionType::get(nothing, false),
                                            GlobalValue::InternalLinkage, name, module_);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
    builder.CreateCall(target, unit);
    builder.CreateRetVoid();
    return function;
  };
  // Priority 0: before every constructor of the program, after every destructor.
  llvm::appendToGlobalCtors(module_, emit("heddle.register", "__heddle_register"), 0);
  llvm::appendToGlobalDtors(module_, emit("heddle.unregister", "__heddle_unregister"), 0);
}

}  // namespace heddle::instrument
