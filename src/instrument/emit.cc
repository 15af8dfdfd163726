#include "instrument/emit.h"

#include "abi/abi.h"

#include <algorithm>
#include <cstddef>

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::IRBuilder;
using llvm::isa;
using llvm::Value;

// A place that the runtime may turn into a jump (abi/abi.h, "sleds").
#define HEDDLE_SLED "1:\n\t.byte 15, 31, 68, 0, 8"

// What stands at label 1 is for words, and is dropped where nobody wants them.
#define HEDDLE_FOR_WORDS \
  "\n\t.pushsection " HEDDLE_WORDS_SECTION ",\"aR?\",@progbits\n\t.long 1b-.\n\t.popsection"

// The header and the words of a loop's record, without what is gathered.
unsigned words_of(const CopiedLoop& loop) {
  return static_cast<unsigned>((loop.again != nullptr ? 3 : 2) + loop.words.size());
}

class Emitter {
 public:
  Emitter(const FunctionPlan& plan, std::span<const CopiedLoop> loops, const Unit& unit,
          RuntimeInterface& runtime, const llvm::TargetLibraryInfo& library)
      : plan_(plan),
        loops_(loops),
        unit_(unit),
        runtime_(runtime),
        library_(library),
        function_(*plan.function),
        context_(function_.getContext()),
        pointer_(llvm::PointerType::get(context_, 0)),
        word_(llvm::Type::getInt64Ty(context_)),
        byte_(llvm::Type::getInt8Ty(context_)) {}

  void run();

 private:
  // Of a loop that gathers; both become registers.
  struct Gathering {
    llvm::AllocaInst* word;  // where the next round's words go
    llvm::AllocaInst* done;  // rounds in records that are complete
  };

  void emit_entry();
  void emit_loop(const CopiedLoop& loop);
  void begin_loop(IRBuilder<>& builder, const CopiedLoop& loop, Value* done);
  Gathering gather(IRBuilder<>& entry, const CopiedLoop& loop);
  void end_piece(const CopiedLoop& loop, const Gathering& at);
  unsigned room_before(const llvm::BasicBlock* block) const;
  void emit_block(const BlockPlan& plan);
  void emit_segment(Step step, unsigned& room);
  void reopen(IRBuilder<>& builder, const Step& step);
  Value* slot_of_way(const Step& step);
  void emit_mark(const Step& step, unsigned& room);
  void emit_flow_segment(const Step& step);
  Value* take_call(IRBuilder<>& builder);
  void emit_before_call(const Step& step);
  void emit_after_call(llvm::Instruction& call);
  void redirect(llvm::CallBase& call);

  // Pieces of inline code, before `builder`'s position.
  Value* tls(IRBuilder<>& builder);
  Value* call_under_way(IRBuilder<>& builder) {
    return builder.CreateConstInBoundsGEP1_64(byte_, tls(builder), offsetof(heddle_tls, call));
  }
  Value* position(IRBuilder<>& builder) { return builder.CreateLoad(pointer_, position_); }
  void ensure_room(IRBuilder<>& builder, unsigned words, unsigned& room);
  void refill_if_full(IRBuilder<>& builder);
  void inline_code(IRBuilder<>& builder, const char* code, const char* operands,
                   llvm::ArrayRef<Value*> values);
  void put(IRBuilder<>& builder, unsigned word, Value* value) {
    put(builder, position(builder), word, value);
  }
  void put(IRBuilder<>& builder, Value* begin, unsigned word, Value* value);
  void put_slot(IRBuilder<>& builder, std::uint32_t slot);
  void advance(IRBuilder<>& builder, unsigned words);
  void go_to(IRBuilder<>& builder, Value* next);
  void reload(IRBuilder<>& builder, bool behind_its_back);
  bool looks_harmless(const llvm::CallBase& call) const;
  void point(IRBuilder<>& builder, const PlannedItem& item);
  void call_point(IRBuilder<>& builder, const PlannedItem& item);
  void put_item(IRBuilder<>& builder, const PlannedItem& item);

  const FunctionPlan& plan_;
  std::span<const CopiedLoop> loops_;
  const Unit& unit_;
  RuntimeInterface& runtime_;
  const llvm::TargetLibraryInfo& library_;
  llvm::Function& function_;
  llvm::LLVMContext& context_;
  llvm::PointerType* pointer_;
  llvm::Type* word_;
  llvm::Type* byte_;

  llvm::Value* tls_{};                        // once per function; a coroutine asks anew every time
  llvm::AllocaInst* position_{};              // becomes a register …
  std::vector<llvm::AllocaInst*> registers_;  // … and so do these
  llvm::AllocaInst* frame_{};                 // its address is the activation's token
  llvm::Value* called_from_{};  // the call that led to a function that passes calls on
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> room_after_;  // blocks that are done
};

Value* Emitter::tls(IRBuilder<>& builder) {
  if (tls_ != nullptr) return tls_;
  return builder.CreateThreadLocalAddress(runtime_.tls);
}

// Volatile where the optimiser believes that the call changes no memory it can see (operator new,
// functions declared pure): what we put in its place writes records. Elsewhere a position that is
// not used again need not be read.
void Emitter::reload(IRBuilder<>& builder, bool behind_its_back) {
  Value* now = builder.CreateAlignedLoad(pointer_, tls(builder), llvm::Align(8), behind_its_back);
  builder.CreateStore(now, position_);
}

bool Emitter::looks_harmless(const llvm::CallBase& call) const {
  const llvm::Function* callee = call.getCalledFunction();
  llvm::LibFunc known{};
  return call.getMemoryEffects() != llvm::MemoryEffects::unknown() ||
         (callee != nullptr && library_.getLibFunc(*callee, known));
}

// Words are written at one store after another into memory that was last touched a ring ago. The
// processor finishes stores in order, so it is told early what it will need: recording into memory
// takes a quarter less time for it.
void Emitter::refill_if_full(IRBuilder<>& builder) {
  Value* limit = builder.CreateConstInBoundsGEP1_64(byte_, tls(builder), 8);
  inline_code(builder,
              "cmpq $2, %r11\n\tja 2f\n1:\n\tprefetchw 768(%r11)" HEDDLE_FOR_WORDS
              "\n\t.subsection 1\n2:\n\t"
              "callq *__heddle_refill_inline@GOTPCREL(%rip)\n\t"
              ".byte 0xe9\n\t.long 1b-.-4\n\t.previous",
              "*m", {limit});
}

// Inline assembly that may leave the function and come back: to the optimiser one instruction that
// may change memory, instead of three blocks for every access. Memory operands are given as
// addresses.
void Emitter::inline_code(IRBuilder<>& builder, const char* code, const char* operands,
                          llvm::ArrayRef<Value*> values) {
  std::vector<Value*> arguments{position(builder)};
  std::vector<llvm::Type*> types{pointer_};
  for (Value* value : values) {
    arguments.push_back(value);
    types.push_back(value->getType());
  }
  const std::string constraints =
      std::string("={r11},0,") + operands + ",~{memory},~{dirflag},~{fpsr},~{flags}";
  auto* type = llvm::FunctionType::get(pointer_, types, false);
  auto* assembly = llvm::InlineAsm::get(type, code, constraints, /*hasSideEffects=*/true);
  llvm::CallInst* call = builder.CreateCall(assembly, arguments);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  unsigned number = 0;
  for (llvm::StringRef rest = operands; !rest.empty(); rest = rest.split(',').second) {
    ++number;
    if (!rest.starts_with("*m")) continue;
    call->addParamAttr(number, llvm::Attribute::get(context_, llvm::Attribute::ElementType, byte_));
  }
  builder.CreateStore(call, position_);
}

void Emitter::ensure_room(IRBuilder<>& builder, unsigned words, unsigned& room) {
  if (room < words) {
    refill_if_full(builder);
    room = HEDDLE_SEGMENT_WORDS;
  }
  room -= words;
}

// A store to `word` of the record, as far as the optimiser is concerned; that it may become a
// no-operation (abi/abi.h, "words") changes nothing for the program.
void Emitter::put(IRBuilder<>& builder, Value* begin, unsigned word, Value* value) {
  Value* offset = llvm::ConstantInt::get(word_, sizeof(std::uint64_t) * word);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_),
                                       {pointer_, value->getType(), word_}, false);
  auto* assembly = llvm::InlineAsm::get(type, "1:\n\tmovq $1, ${2:c}($0)" HEDDLE_FOR_WORDS, "r,r,i",
                                        /*hasSideEffects=*/true);
  llvm::CallInst* call = builder.CreateCall(assembly, {begin, value, offset});
  call->addFnAttr(llvm::Attribute::NoUnwind);
  call->setMemoryEffects(llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::Mod));
}

void Emitter::put_slot(IRBuilder<>& builder, std::uint32_t slot) {
  put(builder, 0, unit_.slot_address(slot));
}

void Emitter::advance(IRBuilder<>& builder, unsigned words) {
  go_to(builder, builder.CreateConstInBoundsGEP1_64(word_, position(builder), words));
}

// The record ends there.
void Emitter::go_to(IRBuilder<>& builder, Value* next) {
  builder.CreateAlignedStore(next, tls(builder), llvm::Align(8));
  builder.CreateStore(next, position_);
}

void Emitter::call_point(IRBuilder<>& builder, const PlannedItem& item) {
  Value* address =
      item.access.address != nullptr ? item.access.address : llvm::Constant::getNullValue(pointer_);
  llvm::CallInst* call = builder.CreateCall(
      runtime_.point, {position(builder), unit_.flag_address(item.site), address});
  call->setCallingConv(llvm::CallingConv::PreserveMost);
  builder.CreateStore(call, position_);
}

void Emitter::point(IRBuilder<>& builder, const PlannedItem& item) {
  if (item.access.always_a_point) {
    call_point(builder, item);
    return;
  }
  inline_code(builder,
              HEDDLE_SLED
              "\n\t.pushsection " HEDDLE_POINTS_SECTION
              ",\"aR?\",@progbits\n\t.long 1b-.\n\t.long ${2:c}-.\n\t.byte 3f-2f\n2:\n\t"
              "leaq $3, %r11\n3:\n\t.popsection",
              "i,*m", {unit_.flag_address(item.site), item.access.address});
}

void Emitter::put_item(IRBuilder<>& builder, const PlannedItem& item) {
  unsigned word = item.word;
  if (item.layout.source == LayoutItem::Source::kWord) {
    Value* address = item.access.address;
    if (item.access.length != nullptr) {
      // An empty range may have any address, 0 too, which no word may be.
      Value* empty = builder.CreateIsNull(item.access.length);
      Value* one = builder.CreateIntToPtr(llvm::ConstantInt::get(word_, 1), pointer_);
      address = builder.CreateSelect(empty, one, address);
    }
    put(builder, word++, address);
  }
  if (item.layout.dynamic_size) {
    Value* length = builder.CreateZExtOrTrunc(item.access.length, word_);
    put(builder, word, builder.CreateAdd(length, llvm::ConstantInt::get(word_, 1)));
  }
}

// Takes up the record that has just ended: it becomes another one.
void Emitter::reopen(IRBuilder<>& builder, const Step& step) {
  const auto length = static_cast<std::int64_t>(1 + step.before);
  Value* begin = builder.CreateInBoundsGEP(word_, position(builder),
                                           llvm::ConstantInt::getSigned(word_, -length));
  go_to(builder, begin);
}

// The slot by the way that the block was entered.
Value* Emitter::slot_of_way(const Step& step) {
  llvm::BasicBlock* block = step.items.front().access.instruction->getParent();
  auto* slot =
      llvm::PHINode::Create(pointer_, static_cast<unsigned>(step.ways.size()), "", block->begin());
  for (llvm::BasicBlock* before : llvm::predecessors(block)) {
    const auto way = std::find_if(step.ways.begin(), step.ways.end(),
                                  [&](const Step::Way& one) { return one.from == before; });
    slot->addIncoming(unit_.slot_address(way->slot), before);
  }
  return slot;
}

void Emitter::emit_segment(Step step, unsigned& room) {
  IRBuilder<> builder(step.items.front().access.instruction);
  if (!step.goes_on) {
    ensure_room(builder, 1 + step.words + step.reserve, room);
    room += step.reserve;
  } else {
    reopen(builder, step);
    room -= step.words;
  }
  put(builder, 0, step.ways.empty() ? unit_.slot_address(step.slot) : slot_of_way(step));
  for (PlannedItem& item : step.items) item.word += step.before;
  step.words += step.before;
  for (const PlannedItem& item : step.items) {
    llvm::Instruction* access = item.access.instruction;
    builder.SetInsertPoint(access);
    if (item.object != nullptr) put(builder, item.word - 1, item.object);
    point(builder, item);
    put_item(builder, item);
    if (!item.layout.outcome) continue;
    builder.SetInsertPoint(access->getNextNode());
    Value* done = builder.CreateZExt(builder.CreateExtractValue(access, 1), word_);
    put(builder, item.word + item.layout.words() - 1,
        builder.CreateAdd(done, llvm::ConstantInt::get(word_, 1)));
  }
  // After an outcome, which is written behind the access, the builder stands where it should.
  const PlannedItem& last = step.items.back();
  if (!last.layout.outcome) builder.SetInsertPoint(last.access.instruction->getNextNode());
  advance(builder, 1 + step.words);
}

void Emitter::emit_mark(const Step& step, unsigned& room) {
  IRBuilder<> builder(step.at);
  Value* called_from = step.kind == Step::Kind::kEnter ? take_call(builder) : nullptr;
  ensure_room(builder, 1 + step.words, room);
  put_slot(builder, step.slot);
  unsigned word = 1;
  if (called_from != nullptr) put(builder, word++, called_from);
  if (step.kind == Step::Kind::kEnter && plan_.method) {
    put(builder, word++, function_.getArg(plan_.object_argument));
  }
  if (step.kind == Step::Kind::kResync || (step.kind == Step::Kind::kEnter && plan_.frame)) {
    put(builder, word, frame_);
  }
  if (step.kind == Step::Kind::kLibcall) point(builder, step.items.front());
  advance(builder, 1 + step.words);
}

// The call that led here. Taken before anything else can make one, and before any inline assembly,
// so that nothing of it is left in memory where the function was inlined into its caller.
Value* Emitter::take_call(IRBuilder<>& builder) {
  Value* call = call_under_way(builder);
  Value* taken = builder.CreateAlignedLoad(pointer_, call, llvm::Align(8));
  builder.CreateAlignedStore(llvm::Constant::getNullValue(pointer_), call, llvm::Align(8));
  return taken;
}

// Nothing at all when the flow level is off.
void Emitter::emit_flow_segment(const Step& step) {
  IRBuilder<> builder(step.at);
  inline_code(builder,
              HEDDLE_SLED "\n\t.pushsection " HEDDLE_FLOWS_SECTION
                          ",\"aR?\",@progbits\n\t.long 1b-.\n\t.long ${2:c}-.\n\t.popsection",
              "i", {unit_.slot_address(step.slot)});
}

// Before and behind a plain loop, and in it if it gathers: abi/abi.h, "loops".
void Emitter::emit_loop(const CopiedLoop& loop) {
  if (!loop.recorded) return;
  IRBuilder<> builder(loop.record->getTerminator());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  const bool gathers = loop.again != nullptr;
  Gathering at{};
  unsigned room = 0;
  ensure_room(builder, words_of(loop) + static_cast<unsigned>(loop.gathered.size()), room);
  begin_loop(builder, loop, llvm::ConstantInt::get(word_, 0));
  if (gathers) at = gather(builder, loop);

  builder.SetInsertPoint(loop.finish->getTerminator());
  if (gathers) {
    Value* done = builder.CreateLoad(word_, at.done);
    put(builder, 1, builder.CreateSub(loop.rounds, done));
    go_to(builder, builder.CreateConstInBoundsGEP1_64(word_, builder.CreateLoad(pointer_, at.word),
                                                      loop.last_words));
  } else {
    put(builder, 1, loop.rounds);
    advance(builder, words_of(loop));
  }
  Value* skipped =
      builder.CreateConstInBoundsGEP1_64(byte_, tls(builder), offsetof(heddle_tls, skipped));
  Value* more = builder.CreateMul(loop.rounds, llvm::ConstantInt::get(word_, loop.words_per_round));
  builder.CreateStore(builder.CreateAdd(builder.CreateLoad(word_, skipped), more), skipped);
  room_after_[loop.finish] = room;
}

// The record of a loop, or of what is left of it after so many rounds.
void Emitter::begin_loop(IRBuilder<>& builder, const CopiedLoop& loop, Value* done) {
  unsigned word = 2;
  put_slot(builder, loop.slot);
  if (loop.again != nullptr) put(builder, word++, done);
  for (Value* value : loop.words) put(builder, word++, value);
  put(builder, 1, builder.CreateNot(builder.CreateSub(loop.rounds, done)));
}

// From the entry on, every round writes words; before another one is tested whether the record has
// room for them.
Emitter::Gathering Emitter::gather(IRBuilder<>& entry, const CopiedLoop& loop) {
  IRBuilder<> builder(position_);
  const Gathering at{.word = builder.CreateAlloca(pointer_), .done = builder.CreateAlloca(word_)};
  registers_.push_back(at.word);
  registers_.push_back(at.done);
  entry.CreateStore(entry.CreateConstInBoundsGEP1_64(word_, position(entry), words_of(loop)),
                    at.word);
  entry.CreateStore(llvm::ConstantInt::get(word_, 0), at.done);
  for (unsigned i = 0; i < loop.gathered.size(); ++i) {
    llvm::Instruction* access = loop.gathered[i];
    builder.SetInsertPoint(access);
    put(builder, builder.CreateLoad(pointer_, at.word), i,
        llvm::getLoadStorePointerOperand(access));
  }
  end_piece(loop, at);
  return at;
}

void Emitter::end_piece(const CopiedLoop& loop, const Gathering& at) {
  const auto round_words = static_cast<unsigned>(loop.gathered.size());
  llvm::BasicBlock* header = loop.again->getSingleSuccessor();
  auto* more = llvm::BasicBlock::Create(context_, "heddle.more", &function_);
  for (llvm::PHINode& phi : header->phis()) {
    phi.addIncoming(phi.getIncomingValueForBlock(loop.again), more);
  }
  IRBuilder<> builder(loop.again->getTerminator());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  Value* next =
      builder.CreateConstInBoundsGEP1_64(word_, builder.CreateLoad(pointer_, at.word), round_words);
  builder.CreateStore(next, at.word);
  // A signal may ask for the turn at any time.
  Value* limit = builder.CreateAlignedLoad(
      pointer_,
      builder.CreateConstInBoundsGEP1_64(byte_, tls(builder), offsetof(heddle_tls, limit)),
      llvm::Align(8), /*isVolatile=*/true);
  builder.CreateCondBr(builder.CreateICmpUGT(next, limit), more, header,
                       llvm::MDBuilder(context_).createBranchWeights(1, 1000));
  loop.again->getTerminator()->eraseFromParent();

  builder.SetInsertPoint(more);
  Value* first = builder.CreateConstInBoundsGEP1_64(word_, position(builder), words_of(loop));
  Value* words = builder.CreatePtrDiff(word_, next, first);
  Value* rounds = builder.CreateExactUDiv(words, llvm::ConstantInt::get(word_, round_words));
  put_slot(builder, loop.piece);
  put(builder, 1, rounds);
  go_to(builder, next);
  refill_if_full(builder);
  Value* done = builder.CreateAdd(builder.CreateLoad(word_, at.done), rounds);
  builder.CreateStore(done, at.done);
  begin_loop(builder, loop, done);
  builder.CreateStore(builder.CreateConstInBoundsGEP1_64(word_, position(builder), words_of(loop)),
                      at.word);
  builder.CreateBr(header);
}

void Emitter::redirect(llvm::CallBase& call) {
  llvm::Function* callee = call.getCalledFunction();
  llvm::FunctionCallee wrapper = function_.getParent()->getOrInsertFunction(
      ("__heddle_" + callee->getName()).str(), callee->getFunctionType(), callee->getAttributes());
  if (auto* made = dyn_cast<llvm::Function>(wrapper.getCallee())) {
    // It records: whatever the library's function promises about memory does not hold.
    made->setMemoryEffects(llvm::MemoryEffects::unknown());
    made->removeFnAttr(llvm::Attribute::Builtin);
  }
  call.setCalledFunction(wrapper);
  call.setMemoryEffects(llvm::MemoryEffects::unknown());
}

// Who is called may say so in its Enter. A call that seems to read no memory still finds there what
// it needs.
void Emitter::emit_before_call(const Step& step) {
  IRBuilder<> builder(step.at);
  const bool behind_its_back = looks_harmless(llvm::cast<llvm::CallBase>(*step.at));
  if (behind_its_back) {
    builder.CreateAlignedStore(position(builder), tls(builder), llvm::Align(8),
                               /*isVolatile=*/true);
  }
  if (step.site == 0) return;
  Value* site =
      plan_.passes_calls ? static_cast<Value*>(called_from_) : unit_.flag_address(step.site);
  builder.CreateAlignedStore(site, call_under_way(builder), llvm::Align(8), behind_its_back);
}

void Emitter::emit_after_call(llvm::Instruction& instruction) {
  auto& call = llvm::cast<llvm::CallBase>(instruction);
  const bool behind_its_back = looks_harmless(call);
  if (auto* invoke = dyn_cast<llvm::InvokeInst>(&call)) {
    // The position in memory is right at every block's start, so a destination that others share
    // may read it, too.
    for (llvm::BasicBlock* next : {invoke->getNormalDest(), invoke->getUnwindDest()}) {
      IRBuilder<> builder(&*next->getFirstInsertionPt());
      reload(builder, behind_its_back);
    }
    return;
  }
  if (call.isTerminator()) return;
  if (call.doesNotReturn() && isa<llvm::UnreachableInst>(call.getNextNode())) return;
  IRBuilder<> builder(call.getNextNode());
  reload(builder, behind_its_back);
}

unsigned Emitter::room_before(const llvm::BasicBlock* block) const {
  unsigned room = HEDDLE_SEGMENT_WORDS;
  for (const llvm::BasicBlock* before : llvm::predecessors(block)) {
    const auto known = room_after_.find(before);
    if (known == room_after_.end()) return 0;
    room = std::min(room, known->second);
  }
  return block->isEntryBlock() || block->isLandingPad() ? 0 : room;
}

void Emitter::emit_block(const BlockPlan& plan) {
  unsigned room = room_before(plan.block);
  for (const Step& step : plan.steps) {
    switch (step.kind) {
      case Step::Kind::kSegment:
        emit_segment(step, room);
        break;
      case Step::Kind::kFlowSegment:
        emit_flow_segment(step);
        room -= room != 0 ? 1 : 0;
        break;
      case Step::Kind::kEnter:
      case Step::Kind::kLeave:
      case Step::Kind::kResync:
        emit_mark(step, room);
        break;
      case Step::Kind::kLibcall:
        emit_mark(step, room);
        redirect(llvm::cast<llvm::CallBase>(*step.at));
        break;
      case Step::Kind::kCall:
        emit_before_call(step);
        emit_after_call(*step.at);
        room = 0;
        break;
    }
  }
  room_after_[plan.block] = room;
}

void Emitter::emit_entry() {
  IRBuilder<> builder(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  position_ = builder.CreateAlloca(pointer_);
  if (plan_.frame) frame_ = builder.CreateAlloca(byte_);
  if (!function_.isPresplitCoroutine()) tls_ = builder.CreateThreadLocalAddress(runtime_.tls);
  reload(builder, false);
  if (plan_.passes_calls) {
    called_from_ = builder.CreateAlignedLoad(pointer_, call_under_way(builder), llvm::Align(8));
  }
}

void Emitter::run() {
  llvm::DenseMap<const llvm::BasicBlock*, const BlockPlan*> plans;
  for (const BlockPlan& block : plan_.blocks) plans[block.block] = &block;
  std::vector<const BlockPlan*> order;
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
    // Blocks of copies, and around them, have no plan.
    if (const BlockPlan* plan = plans.lookup(block)) order.push_back(plan);
  }
  emit_entry();
  // The inline tests call without the compiler's knowledge.
  function_.addFnAttr(llvm::Attribute::NoRedZone);
  for (const CopiedLoop& loop : loops_) emit_loop(loop);
  for (const BlockPlan* block : order) emit_block(*block);
  for (const CopiedLoop& loop : loops_) join_values(loop);
  llvm::DominatorTree tree(function_);
  registers_.push_back(position_);
  llvm::PromoteMemToReg(registers_, tree);
}

}  // namespace

RuntimeInterface::RuntimeInterface(llvm::Module& m) : module(m) {
  llvm::LLVMContext& context = m.getContext();
  llvm::PointerType* pointer = llvm::PointerType::get(context, 0);
  tls = new llvm::GlobalVariable(m, llvm::ArrayType::get(pointer, sizeof(heddle_tls) / 8), false,
                                 llvm::GlobalValue::ExternalLinkage, nullptr, "__heddle_tls",
                                 nullptr, llvm::GlobalValue::InitialExecTLSModel);
  tls->setAlignment(llvm::Align(8));
  point = m.getOrInsertFunction("__heddle_point", pointer, pointer, pointer, pointer);
  auto* function = llvm::cast<llvm::Function>(point.getCallee());
  function->setCallingConv(llvm::CallingConv::PreserveMost);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // Not through the procedure linkage table, which may clobber registers while it binds.
  function->addFnAttr(llvm::Attribute::NonLazyBind);
}

void emit_function(const FunctionPlan& plan, std::span<const CopiedLoop> loops, const Unit& unit,
                   RuntimeInterface& runtime, const llvm::TargetLibraryInfo& library) {
  Emitter(plan, loops, unit, runtime, library).run();
}

}  // namespace heddle::instrument
