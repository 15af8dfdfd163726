// Segment descriptors in the form in which FlowMachine executes them: flat, checked once.
//
// A descriptor (trace/catalog.h) is a small tree of vectors; walking it for every execution of a
// segment costs more than the flow itself. Here each segment is a fixed-size record and every list
// of registers is a slice of one array. Whatever a hostile file could get wrong is put right at
// this point: a register beyond the function's is dropped from source lists, and a definition of
// it goes to a spare register that nobody reads, so that execution needs no checks.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace heddle {

// A list in FlowPrograms' array of numbers: at `at` its length, then its elements.
struct FlowList {
  std::uint32_t at = 0;
};

struct FlowItem {
  SiteId site{};
  Register defines{};  // the spare register when it defines none
  FlowList address;
  FlowList value;
};

struct FlowSegment {
  FunctionId function{};
  std::uint32_t block{};
  bool enters_function{};
  bool enters_block{};
  SegmentEnd end{};
  std::uint32_t registers{};  // of the function, without the spare one
  std::uint32_t parameters{};
  StringId function_name{};  // as calls name it
  std::uint32_t first_item{};
  std::uint32_t item_count{};
  FlowList parents;  // blocks
  FlowList from;     // what a branch, result or callee is computed from
  Register defines{};
  StringId callee{};
  std::uint32_t first_argument{};
  std::uint32_t argument_count{};
  std::uint32_t first_phi{};
  std::uint32_t phi_count{};
};

class FlowPrograms {
 public:
  static constexpr std::uint32_t kMaxRegisters = 1u << 20;
  static constexpr std::uint32_t kMaxBlocks = 1u << 20;

  explicit FlowPrograms(const Catalog& catalog) : catalog_(catalog) {}

  // nullptr when there is no such segment. The catalog may have grown since the last call.
  const FlowSegment* find(SegmentId id) {
    if (id < compiled_.size() && compiled_[id] != nullptr) return compiled_[id];
    return compile(id);
  }

  const FlowItem& item(std::uint32_t number) const { return items_[number]; }
  FlowList argument(std::uint32_t number) const { return arguments_[number]; }
  const std::uint32_t* numbers(FlowList list) const { return numbers_.data() + list.at; }
  bool empty(FlowList list) const { return numbers_[list.at] == 0; }

  struct Phi {
    Register defines{};
    std::uint32_t first_edge{};
    std::uint32_t edge_count{};
  };
  struct Edge {
    std::uint32_t block{};
    FlowList sources;
  };
  const Phi& phi(std::uint32_t number) const { return phis_[number]; }
  const Edge& edge(std::uint32_t number) const { return edges_[number]; }

  // Whether a call of `callee` begins the function that the linker knows as `name`: the same name,
  // or another variant of the same constructor or destructor, which the linker may know as one.
  bool calls(StringId callee, StringId name);

 private:
  const FlowSegment* compile(SegmentId id);
  FlowList registers(const Sources& sources, std::uint32_t limit);
  FlowList list(const std::vector<std::uint32_t>& numbers);

  const Catalog& catalog_;
  std::vector<const FlowSegment*> compiled_;  // by SegmentId
  std::deque<FlowSegment> segments_;
  std::vector<FlowItem> items_;
  std::vector<FlowList> arguments_;
  std::vector<Phi> phis_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> numbers_{0};             // list 0 is empty
  std::unordered_map<std::uint64_t, bool> variants_;  // by callee and name
};

}  // namespace heddle
