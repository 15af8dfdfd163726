#include "instrument/plan.h"

#include "instrument/address.h"
#include "instrument/implied.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/xxhash.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::isa;
using Source = LayoutItem::Source;

// Room for the words of one item more.
constexpr unsigned kMaxWords = HEDDLE_SEGMENT_WORDS - 8;

llvm::Argument* this_argument(llvm::Function& function) {
  for (llvm::Argument& argument : function.args()) {
    if (!argument.hasStructRetAttr()) return &argument;
  }
  return nullptr;
}

bool returns_twice(const llvm::Instruction& instruction) {
  const auto* call = dyn_cast<llvm::CallBase>(&instruction);
  return call != nullptr && call->hasFnAttr(llvm::Attribute::ReturnsTwice);
}

class Planner {
 public:
  Planner(llvm::Function& function, Unit& unit, const Facts& facts,
          const llvm::TargetLibraryInfo& library)
      : function_(function),
        unit_(unit),
        catalog_(unit.catalog()),
        facts_(facts),
        library_(library),
        flow_(function, sharing_),
        addresses_(function.getParent()->getDataLayout()) {}

  FunctionPlan run(Function entry);

 private:
  struct Found {  // an instruction that matters, in the order of its block
    llvm::Instruction* instruction{};
    llvm::SmallVector<Access, 2> accesses;
    CallKind call{CallKind::kNone};
  };

  void scan();
  bool wants_marks() const;
  void plan_block(BlockPlan& plan);
  void plan_libcall(BlockPlan& plan, llvm::CallBase& call);
  void begin_segment(const llvm::BasicBlock& block, std::uint32_t index);
  void add_access(const Access& access);
  void end_segment(BlockPlan& plan, SegmentEnd end, llvm::Instruction& at);
  void plan_terminator(BlockPlan& plan);
  LayoutItem locate(const Access& access);
  SiteId add_site(const Access& access);
  Site site_at(const llvm::Instruction& instruction, std::uint32_t ordinal);
  bool may_call_back(const llvm::CallBase& call) const;
  SiteId add_call_site(const llvm::CallBase& call);
  bool matters(const Segment& segment, const llvm::Instruction& at) const;

  llvm::Function& function_;
  Unit& unit_;
  Catalog& catalog_;
  const Facts& facts_;
  const llvm::TargetLibraryInfo& library_;
  Sharing sharing_;
  Flow flow_;
  Addresses addresses_;

  FunctionId id_{};
  std::uint64_t key_{};
  bool marks_{};
  bool frame_{};
  std::uint32_t ordinal_{};
  std::uint32_t call_ordinal_{};
  std::vector<std::vector<Found>> found_;  // by block number
  bool calls_{};
  bool accesses_{};

  // The segment that is being filled.
  Segment segment_;
  Step step_;
  std::vector<LayoutItem> layout_;
  std::map<std::vector<std::uint64_t>, std::pair<std::uint32_t, std::int64_t>> located_;
};

void Planner::scan() {
  for (llvm::BasicBlock& block : function_) {
    std::vector<Found>& found = found_.emplace_back();
    for (llvm::Instruction& instruction : block) {
      if (auto* phi = dyn_cast<llvm::PHINode>(&instruction)) {
        flow_.define(phi);
        continue;
      }
      if (isa<llvm::LandingPadInst>(instruction)) frame_ = true;
      Found entry;
      entry.instruction = &instruction;
      entry.accesses = accesses_of(instruction, sharing_);
      entry.call = call_kind(instruction, library_, sharing_);
      if (returns_twice(instruction)) frame_ = true;
      if (entry.accesses.empty() && entry.call == CallKind::kNone) continue;
      for (const Access& access : entry.accesses) {
        accesses_ = true;
        if (access.kind != EventKind::kWrite && access.kind != EventKind::kFence) {
          flow_.define(&instruction);
        }
      }
      if (entry.call != CallKind::kNone) {
        calls_ = true;
        if (!instruction.getType()->isVoidTy()) flow_.define(&instruction);
      }
      found.push_back(std::move(entry));
    }
  }
}

// A function that neither touches shared memory nor calls anything is nobody's unit of work. A
// coroutine's activation is not nested in its caller's.
bool Planner::wants_marks() const {
  return (accesses_ || calls_) && !is_standard(function_) && !is_structor_shell(function_) &&
         !function_.isPresplitCoroutine();
}

// Whether instrumented code may run below the call: not below what the C library does by itself.
bool Planner::may_call_back(const llvm::CallBase& call) const {
  const llvm::Function* callee = call.getCalledFunction();
  llvm::LibFunc known{};
  return callee == nullptr || !library_.getLibFunc(*callee, known) || known == llvm::LibFunc_qsort;
}

// Numbered apart from accesses, whose keys must not change when a call comes or goes.
SiteId Planner::add_call_site(const llvm::CallBase& call) {
  Site site = site_at(call, call_ordinal_++);
  site.kind = EventKind::kEnter;
  site.key = ~site.key;
  catalog_.sites.push_back(site);
  return static_cast<SiteId>(catalog_.sites.size() - 1);
}

Site Planner::site_at(const llvm::Instruction& instruction, std::uint32_t ordinal) {
  Site site;
  site.function = id_;
  site.ordinal = ordinal;
  if (const llvm::DILocation* place = instruction.getDebugLoc().get()) {
    // What stands in a header of the library is the caller's doing, and the caller's line.
    while (place->getInlinedAt() != nullptr && in_system_header(file_path(place->getFile()))) {
      place = place->getInlinedAt();
    }
    site.file = unit_.intern(file_path(place->getFile()));
    site.line = place->getLine();
    site.column = place->getColumn();
  } else {
    site.file = catalog_.functions[id_].file;
  }
  site.key = (key_ ^ site.ordinal) * 0x9e3779b97f4a7c15ull;
  site.key ^= site.key >> 29;
  return site;
}

SiteId Planner::add_site(const Access& access) {
  Site site = site_at(*access.instruction, ordinal_++);
  site.kind = access.kind;
  site.order = access.order;
  site.flags = access.flags;
  site.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(access.bytes, 0x7fffffff));
  if (const AccessFact* fact = facts_.of(*access.instruction, access.destination)) {
    site.variable = unit_.intern(fact->variable);
    site.type = unit_.intern(fact->type);
    site.field = unit_.intern(fact->field);
    site.offset = fact->offset;
    if (fact->bit_field) site.flags |= Site::kBitField;
  }
  catalog_.sites.push_back(site);
  return static_cast<SiteId>(catalog_.sites.size() - 1);
}

LayoutItem Planner::locate(const Access& access) {
  LayoutItem item;
  item.dynamic_size = access.length != nullptr;
  item.outcome = access.has_outcome;
  item.failure_order = static_cast<std::uint8_t>(access.failure_order);
  if (access.address == nullptr) {
    item.source = Source::kNone;
    return item;
  }
  LinearAddress linear = addresses_.linear(access.address);
  if (linear.plain) {
    auto* variable = const_cast<llvm::GlobalVariable*>(dyn_cast<llvm::GlobalVariable>(linear.base));
    if (variable != nullptr && unit_.symbol(variable, item.reference)) {
      item.source = Source::kSymbol;
      item.offset = linear.constant;
      return item;
    }
  }
  const auto number = static_cast<std::uint32_t>(layout_.size());
  const auto [at, fresh] =
      located_.try_emplace(std::move(linear.key), std::pair(number, linear.constant));
  if (fresh) return item;
  // An empty range's address is not written as it is, so nothing can be derived from one.
  if (layout_[at->second.first].dynamic_size) {
    at->second = {number, linear.constant};
    return item;
  }
  if (item.dynamic_size) return item;
  item.source = Source::kItem;
  item.reference = at->second.first;
  item.offset = linear.constant - at->second.second;
  return item;
}

void Planner::begin_segment(const llvm::BasicBlock& block, std::uint32_t index) {
  segment_ = {};
  segment_.function = id_;
  segment_.block = flow_.block_number(&block);
  segment_.index = index;
  segment_.control_parents = flow_.control_parents(&block);
  if (index == 0) {
    for (const llvm::PHINode& phi : block.phis()) {
      Phi entry{.defines = flow_.register_of(&phi), .incoming = {}};
      for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
        entry.incoming.push_back({.block = flow_.block_number(phi.getIncomingBlock(i)),
                                  .sources = flow_.sources(phi.getIncomingValue(i))});
      }
      std::sort(entry.incoming.begin(), entry.incoming.end(),
                [](const Phi::Incoming& a, const Phi::Incoming& b) { return a.block < b.block; });
      segment_.phis.push_back(std::move(entry));
    }
  }
  step_ = {.kind = Step::Kind::kSegment, .at = nullptr, .slot = 0, .words = 0, .items = {}};
  layout_.clear();
  located_.clear();
}

void Planner::add_access(const Access& access) {
  PlannedItem item{.access = access, .site = add_site(access), .layout = locate(access)};
  item.word = 1 + step_.words;
  step_.words += item.layout.words();
  AccessItem described;
  described.site = item.site;
  if (access.address != nullptr) described.address_from = flow_.sources(access.address);
  if (access.kind != EventKind::kWrite && access.kind != EventKind::kFence) {
    described.defines = flow_.register_of(access.instruction);
  }
  if (const auto* store = dyn_cast<llvm::StoreInst>(access.instruction)) {
    described.value_from = flow_.sources(store->getValueOperand());
  } else if (const auto* rmw = dyn_cast<llvm::AtomicRMWInst>(access.instruction)) {
    described.value_from = flow_.sources(rmw->getValOperand());
  } else if (const auto* swap = dyn_cast<llvm::AtomicCmpXchgInst>(access.instruction)) {
    described.value_from = flow_.sources(swap->getNewValOperand());
    for (const Register more : flow_.sources(swap->getCompareOperand())) {
      described.value_from.push_back(more);
    }
  } else if (access.destination) {
    if (const auto* copy = dyn_cast<llvm::AnyMemTransferInst>(access.instruction)) {
      if (const Register read = flow_.register_of(copy); read != kNoRegister) {
        described.value_from = {read};
      } else if (const llvm::Value* slot = sharing_.private_slot(copy->getRawSource())) {
        described.value_from = flow_.slot_sources(slot);
      }
    } else if (const auto* fill = dyn_cast<llvm::AnyMemSetInst>(access.instruction)) {
      described.value_from = flow_.sources(fill->getValue());
    }
  } else if (access.kind == EventKind::kWrite) {
    described.value_from = flow_.sources(access.instruction->getOperand(0));  // masked store
  }
  layout_.push_back(item.layout);
  segment_.items.push_back(std::move(described));
  step_.items.push_back(item);
}

// Whether the flow level needs to know that a segment without accesses was executed. The first
// segment of a function begins an activation and a return ends it.
bool Planner::matters(const Segment& segment, const llvm::Instruction& at) const {
  if (!accesses_ && !calls_) return false;  // arithmetic, for whoever calls it
  if (!segment.phis.empty() || (segment.block == 0 && segment.index == 0)) return true;
  switch (segment.end) {
    case SegmentEnd::kBranch:
    case SegmentEnd::kCall:
    case SegmentEnd::kReturn:
      return true;
    case SegmentEnd::kUnwind:
      return false;
    case SegmentEnd::kFallThrough:
      break;
  }
  if (!at.isTerminator() || segment.index != 0) return false;
  for (const llvm::BasicBlock* next : llvm::successors(&at)) {
    if (!next->phis().empty()) return true;  // they ask where control came from
  }
  return false;
}

void Planner::end_segment(BlockPlan& plan, SegmentEnd end, llvm::Instruction& at) {
  segment_.end = end;
  const auto number = static_cast<std::uint32_t>(catalog_.segments.size());
  if (step_.items.empty()) {
    if (matters(segment_, at)) {
      step_.kind = Step::Kind::kFlowSegment;
      step_.at = &at;
      step_.slot = unit_.add_slot(HEDDLE_SLOT_FLOW_SEGMENT, number, 0);
      plan.steps.push_back(std::move(step_));
    }
  } else {
    step_.slot = unit_.add_segment_slot(number, layout_);
    step_.parts = {{.slot = step_.slot, .call_site = 0}};
    plan.steps.push_back(std::move(step_));
  }
  catalog_.segments.push_back(std::move(segment_));
}

void Planner::plan_terminator(BlockPlan& plan) {
  llvm::Instruction& terminator = *plan.block->getTerminator();
  SegmentEnd end = SegmentEnd::kFallThrough;
  if (isa<llvm::ReturnInst>(terminator)) {
    end = SegmentEnd::kReturn;
    if (terminator.getNumOperands() != 0) {
      segment_.end_from = flow_.sources(terminator.getOperand(0));
    }
  } else if (terminator.getNumSuccessors() == 0) {
    end = SegmentEnd::kUnwind;
  } else if (terminator.getNumSuccessors() > 1) {
    end = SegmentEnd::kBranch;
    segment_.end_from = flow_.sources(terminator.getOperand(0));
  }
  end_segment(plan, end, terminator);
}

// The wrapper in the runtime reports the ranges; here is where they belong, and the scheduling
// point.
void Planner::plan_libcall(BlockPlan& plan, llvm::CallBase& call) {
  Site site = site_at(call, ordinal_++);
  site.kind = EventKind::kRead;
  site.flags = Site::kRange;
  PlannedItem item;
  item.site = static_cast<SiteId>(catalog_.sites.size());
  item.access.instruction = &call;
  for (llvm::Use& argument : call.args()) {
    if (!argument->getType()->isPointerTy()) continue;
    item.access.address = argument.get();
    break;
  }
  catalog_.sites.push_back(site);
  plan.steps.push_back({.kind = Step::Kind::kLibcall,
                        .at = &call,
                        .slot = unit_.add_slot(HEDDLE_SLOT_LIBCALL, item.site, 0),
                        .words = 0,
                        .items = {item}});
}

void Planner::plan_block(BlockPlan& plan) {
  llvm::BasicBlock& block = *plan.block;
  std::uint32_t index = 0;
  begin_segment(block, index);
  if (block.isLandingPad() && frame_ && marks_) {
    plan.steps.push_back({.kind = Step::Kind::kResync,
                          .at = &*block.getFirstInsertionPt(),
                          .slot = unit_.add_slot(HEDDLE_SLOT_RESYNC, id_, 1),
                          .words = 1,
                          .items = {}});
  }
  bool terminated = false;
  for (Found& found : found_[flow_.block_number(&block)]) {
    for (const Access& access : found.accesses) {
      if (step_.words > kMaxWords) {
        end_segment(plan, SegmentEnd::kFallThrough, *found.instruction);
        begin_segment(block, ++index);
      }
      add_access(access);
    }
    if (found.call == CallKind::kNone) continue;
    auto& call = llvm::cast<llvm::CallBase>(*found.instruction);
    for (const llvm::Use& argument : call.args()) {
      segment_.arguments.push_back(flow_.sources(argument.get()));
    }
    if (call.getCalledFunction() != nullptr) {
      segment_.callee = unit_.intern(call.getCalledFunction()->getName().str());
    } else {
      segment_.end_from = flow_.sources(call.getCalledOperand());
    }
    segment_.defines = flow_.register_of(&call);
    end_segment(plan, SegmentEnd::kCall, call);
    if (found.call == CallKind::kRangeOfLibc) {
      plan_libcall(plan, call);
    }
    const auto* plain = dyn_cast<llvm::CallInst>(&call);
    if (plain != nullptr && plain->isMustTailCall()) {
      if (marks_)
        plan.steps.push_back({.kind = Step::Kind::kLeave,
                              .at = &call,
                              .slot = unit_.add_slot(HEDDLE_SLOT_LEAVE, id_, 0),
                              .words = 0,
                              .items = {}});
      terminated = true;  // nothing may stand between such a call and its return
      break;
    }
    plan.steps.push_back({.kind = Step::Kind::kCall,
                          .at = &call,
                          .slot = 0,
                          .words = 0,
                          .items = {},
                          .site = may_call_back(call) ? add_call_site(call) : SiteId{0}});
    if (marks_ && returns_twice(call)) {
      plan.steps.push_back({.kind = Step::Kind::kResync,
                            .at = call.getNextNode(),
                            .slot = unit_.add_slot(HEDDLE_SLOT_RESYNC, id_, 1),
                            .words = 1,
                            .items = {}});
    }
    if (call.isTerminator()) {
      terminated = true;
      break;
    }
    begin_segment(block, ++index);
  }
  if (!terminated) plan_terminator(plan);
  llvm::Instruction& terminator = *block.getTerminator();
  if (marks_ && !terminated &&
      (isa<llvm::ReturnInst>(terminator) || isa<llvm::ResumeInst>(terminator))) {
    plan.steps.push_back({.kind = Step::Kind::kLeave,
                          .at = &terminator,
                          .slot = unit_.add_slot(HEDDLE_SLOT_LEAVE, id_, 0),
                          .words = 0,
                          .items = {}});
  }
}

FunctionPlan Planner::run(Function entry) {
  scan();
  marks_ = wants_marks();
  FunctionPlan plan{.function = &function_, .blocks = {}};
  if (const llvm::Argument* object = this_argument(function_)) {
    plan.method = (entry.flags & Function::kMethod) != 0;
    plan.object_argument = object->getArgNo();
  }
  plan.frame = frame_ && marks_;
  plan.passes_calls = !marks_ && !function_.isPresplitCoroutine();
  if (plan.frame) entry.flags |= Function::kCatchesJumps;
  entry.registers = flow_.register_count();
  key_ = entry.key;
  id_ = static_cast<FunctionId>(catalog_.functions.size());
  catalog_.functions.push_back(entry);
  for (llvm::BasicBlock& block : function_) {
    BlockPlan& next = plan.blocks.emplace_back();
    next.block = &block;
    if (marks_ && block.isEntryBlock()) {
      const unsigned words = 1u + (plan.method ? 1u : 0u) + (plan.frame ? 1u : 0u);
      next.steps.push_back({.kind = Step::Kind::kEnter,
                            .at = &*block.getFirstNonPHIOrDbgOrAlloca(),
                            .slot = unit_.add_slot(HEDDLE_SLOT_ENTER, id_, words),
                            .words = words,
                            .items = {}});
    }
    plan_block(next);
  }
  leave_out_implied(plan, unit_);
  return plan;
}

}  // namespace

bool FunctionPlan::has_records() const {
  return std::any_of(blocks.begin(), blocks.end(), [](const BlockPlan& block) {
    return std::any_of(block.steps.begin(), block.steps.end(),
                       [](const Step& step) { return step.kind != Step::Kind::kCall; });
  });
}

FunctionPlan plan_function(llvm::Function& function, Unit& unit, const Facts& facts,
                           const DebugTypes& types, const llvm::TargetLibraryInfo& library) {
  Function entry = describe_function(function, types, unit.catalog().strings);
  return Planner(function, unit, facts, library).run(entry);
}

void plan_sync_calls(const Facts& facts, Unit& unit) {
  for (const SyncFact& fact : facts.sync_calls()) {
    Site site;
    const std::string file = file_path(fact.place->getFile());
    site.file = unit.intern(file);
    site.line = fact.place->getLine();
    site.column = fact.place->getColumn();
    site.kind = EventKind::kAcquire;
    site.flags = Site::kSync;
    site.variable = unit.intern(fact.object.variable);
    site.type = unit.intern(fact.object.type);
    site.field = unit.intern(fact.object.field);
    site.offset = fact.object.offset;
    // Units that include the same header say the same.
    site.key = llvm::xxh3_64bits(
        fmt::format("{}:{}:{}:{}", file, site.line, site.column, fact.object.variable));
    unit.catalog().sites.push_back(site);
  }
}

}  // namespace heddle::instrument
