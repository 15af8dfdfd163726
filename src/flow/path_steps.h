// How a path is compiled (flow/paths.h): first as the steps that FlowMachine would take for its
// executions, one after the other; then as what is left of them.
#pragma once

#include "flow/program.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

// A step of FlowMachine. Controls are numbered: 0 is the one before the path, then come, for each
// step, that of its statements and what its branch decides.
struct PathStep {
  enum class Kind : std::uint8_t {
    kStatements,   // phis, `items`, a branch
    kEnter,        // of `function`
    kLeave,        // the same
    kCall,         // begins an activation, called at the end of `segment`
    kReturn,       // ends it; `segment` called it
    kLibraryCall,  // at the end of `segment`, without a segment of its own
  };
  static constexpr std::uint8_t kAsked = Path::kAsked;
  static constexpr std::uint32_t kNoEdge = ~0u;

  Kind kind{};
  std::uint8_t execution{};  // which of the path's has its words
  std::uint8_t control{};    // its number, or kAsked: found by what was executed before the path …
  bool branches{};
  bool marks{};                          // its branch may control what comes after the path
  const FlowSegment* segment = nullptr;  // … that this segment depends on
  std::span<LiveItem> items;
  FlowList from;                 // of its branch or result
  std::uint32_t edge = kNoEdge;  // its phis
  std::uint32_t block{};
  std::uint32_t id{};  // segment
  std::uint32_t function{};
  std::uint32_t registers{};  // of a function that is called, with the spare one
  std::uint32_t parameters{};
  std::uint32_t step{};     // of the thread, from the path's first on
  std::uint32_t ordinal{};  // the same
};

// Follows values through the steps, so that what only moves them about need not be done: phis,
// arguments, results, registers that a call begins with. What is left are accesses, branches, and
// calls with accesses in them; and in the end the registers that hold something else than before.
//
// A value is the slots that it is computed from. A slot is a register of the activation that the
// path begins in, or one of its own behind those.
class PathReducer {
 public:
  // `registers`: of the activation that the path begins in, with the spare one.
  PathReducer(FlowPrograms& programs, std::uint32_t registers, Path& out);

  void add(const PathStep& step);
  // `last`: the control in force at the end, or kAsked.
  void finish(std::uint8_t last);

 private:
  using Slot = std::uint32_t;
  using Value = std::vector<Slot>;  // sorted; none: nothing
  using Registers = std::vector<Value>;
  struct Call {
    std::size_t op{};
    bool accesses{};
  };

  Registers& top() { return activations_.back(); }
  void statements(const PathStep& step);
  void access(const PathStep& step, const LiveItem& item, std::uint32_t ordinal);
  void branch(const PathStep& step, std::uint8_t control);
  void enter(const PathStep& step);
  void leave(const PathStep& step);
  void call(const PathStep& step);
  void put_back();
  Value value_of(const Registers& registers, FlowList list);
  Slot define(std::uint32_t reg);
  bool is_used(Slot slot, std::uint32_t but_for) const;
  Slot own_slot() { return next_slot_++; }
  FlowList list(const Value& value);
  PathOp& push(PathOp::Kind kind, const PathStep& step);
  void join(Slot slot, const Value& value);

  FlowPrograms& programs_;
  Path& path_;
  std::uint32_t spare_;
  Slot next_slot_;
  std::vector<Registers> activations_;
  std::vector<Call> calls_;
  std::vector<std::uint8_t> same_as_;  // by control: where it is
  std::vector<LiveItem> items_;
  std::vector<std::size_t> item_ops_;  // which of the ops are theirs
};

}  // namespace heddle
