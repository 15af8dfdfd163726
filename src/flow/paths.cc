#include "flow/path_steps.h"

#include <algorithm>
#include <utility>

namespace heddle {

using Kind = PathStep::Kind;

// Follows executions as FlowMachine would, and puts down what has to be done for them. What depends
// on more than the path itself ends it.
class PathCompiler {
 public:
  PathCompiler(FlowPrograms& programs, Path& out) : programs_(programs), path_(out) {}

  void begin(const FlowSegment* pending, std::uint32_t block, FunctionId function) {
    path_.pending = pending;
    path_.from = block;
    activations_.push_back({.function = function, .block = block, .pending = pending});
  }
  // Whether it is of the path.
  bool add(ShapeId id, const RecordShape& shape);
  // Forgets what came after the last execution at which the path can end. `registers`: of the
  // activation that it began in, with the spare one.
  void finish(std::uint32_t registers);

 private:
  struct Branch {
    std::uint32_t block{};
    std::uint8_t decision{};
  };
  struct Asked {
    FlowList parents;
    std::uint8_t control{};
  };
  struct Activation {
    FunctionId function{};
    std::uint32_t block{};
    const FlowSegment* pending = nullptr;  // its call that has not come back
    const FlowSegment* caller = nullptr;   // the call that it is
    std::uint8_t call_control{};
    std::uint8_t control{};              // in force …
    const FlowSegment* asked = nullptr;  // … unless nobody has asked for that of this segment
    std::vector<Branch> branches{};
    std::vector<Asked> controls{};
  };

  Activation& top() { return activations_.back(); }
  bool is_outer() const { return activations_.size() == 1; }
  bool add_segment(const LiveSegment& live);
  void end_here(const FlowSegment& last, std::uint32_t count);
  void end_before_loop(const RecordShape& loop);
  bool begin_segment(const FlowSegment& first);
  bool call(const FlowSegment& entry);
  void come_back();
  bool statements(const FlowSegment& segment, SegmentId id, std::span<LiveItem> items);
  void enter_block(const FlowSegment& segment);
  void use_control(PathStep& step);
  PathStep& push(Kind kind) {
    PathStep& step = all_.emplace_back();
    step.kind = kind;
    step.execution = static_cast<std::uint8_t>(path_.count);
    step.ordinal = events_;
    step.step = steps_;
    return step;
  }
  std::uint8_t this_control() const { return static_cast<std::uint8_t>(2 * all_.size() - 1); }

  FlowPrograms& programs_;
  Path& path_;
  std::vector<PathStep> all_;
  std::vector<Activation> activations_;
  std::vector<FunctionId> entered_;
  std::uint32_t events_ = 0;
  std::uint32_t steps_ = 0;
  std::uint32_t mark_count_ = 0;
  const FlowSegment* called_ = nullptr;  // the last call of the outermost activation that came back
  bool ended_ = false;                   // it has come to where its activation is left
  // At the last possible end.
  std::size_t end_steps_ = 0;
  std::uint32_t end_count_ = 0;
};

namespace {

bool are_same(FlowList a, FlowList b) {
  return std::equal(a.numbers(), a.numbers() + a.size() + 1, b.numbers(),
                    b.numbers() + b.size() + 1);
}

bool has(FlowList list, std::uint32_t number) {
  const std::uint32_t* const first = list.numbers() + 1;
  return std::find(first, first + list.size(), number) != first + list.size();
}

}  // namespace

bool PathCompiler::add(ShapeId id, const RecordShape& shape) {
  if (ended_ || all_.size() + shape.before.size() + 4 > Path::kMostSteps) return false;
  path_.shapes[path_.count] = id;
  if (shape.kind == RecordShape::Kind::kEnter) {
    if (top().pending == nullptr) return false;
    entered_.push_back(static_cast<FunctionId>(shape.id));
    push(Kind::kEnter).function = static_cast<FunctionId>(shape.id);
    ++events_;
  } else if (shape.kind == RecordShape::Kind::kLeave) {
    if (entered_.empty() || entered_.back() != static_cast<FunctionId>(shape.id)) return false;
    entered_.pop_back();
    push(Kind::kLeave).function = static_cast<FunctionId>(shape.id);
    ++events_;
  } else if (shape.kind == RecordShape::Kind::kLoop) {
    end_before_loop(shape);
    return false;
  } else if (shape.kind != RecordShape::Kind::kSegment || !add_segment(programs_.live_[id])) {
    return false;
  }
  ++path_.count;
  return true;
}

bool PathCompiler::add_segment(const LiveSegment& live) {
  if (!live.fits) return false;
  const FlowSegment& first = live.before_count == 0 ? *live.flow : *live.before[0].flow;
  if (!begin_segment(first)) return false;
  for (const LiveBefore& before : std::span(live.before, live.before_count)) {
    if (!statements(*before.flow, before.id, {})) return false;
  }
  const FlowSegment& segment = *live.flow;
  const std::uint32_t ordinal = events_;
  if (!statements(segment, live.id, live.all_items())) return false;
  events_ += live.item_count;
  switch (segment.end) {
    case SegmentEnd::kCall:
      top().pending = &segment;
      break;
    case SegmentEnd::kReturn:
      if (is_outer()) {
        ended_ = true;
        break;
      }
      come_back();
      return true;
    case SegmentEnd::kUnwind:
      return false;
    case SegmentEnd::kFallThrough:
    case SegmentEnd::kBranch:
      if (!live.ends_now) return false;
      break;
  }
  if (!is_outer() || !entered_.empty()) return true;
  path_.end_id = live.id;
  path_.end_ordinal = ordinal;
  path_.stays_open = !live.ends_now;
  end_here(segment, path_.count + 1);
  return true;
}

// Here it can end, after so many executions.
void PathCompiler::end_here(const FlowSegment& last, std::uint32_t count) {
  path_.asked = top().asked;
  path_.last = top().asked != nullptr ? PathStep::kAsked : top().control;
  path_.end = &last;
  path_.events = events_;
  path_.step_count = steps_;
  path_.mark_count = mark_count_;
  end_steps_ = all_.size();
  end_count_ = path_.known = count;
}

// A call has come back, and a loop follows in the activation that made it: then nothing can belong
// to the call any more.
void PathCompiler::end_before_loop(const RecordShape& loop) {
  if (!is_outer() || !entered_.empty() || called_ == nullptr || end_count_ == path_.count ||
      top().pending != nullptr || loop.parts.empty()) {
    return;
  }
  const LiveSegment& next = programs_.live_[loop.parts[0].shape];
  if (!next.fits || next.continues != top().function) return;
  path_.stays_open = false;
  end_here(*called_, path_.count);
  ++path_.known;
}

void PathCompiler::finish(std::uint32_t registers) {
  path_.count = end_count_;
  if (path_.count < 2) return;
  PathReducer reducer(programs_, registers, path_);
  for (const PathStep& step : std::span(all_).first(end_steps_)) reducer.add(step);
  reducer.finish(path_.last);
}

// Finds the activation.
bool PathCompiler::begin_segment(const FlowSegment& first) {
  if (first.enters_function) return call(first);
  if (first.function != top().function) return false;
  if (const FlowSegment* library = std::exchange(top().pending, nullptr); library != nullptr)
    push(Kind::kLibraryCall).segment = library;
  return true;
}

bool PathCompiler::call(const FlowSegment& entry) {
  const FlowSegment* const caller = top().pending;
  if (caller == nullptr || activations_.size() == Path::kDeepest ||
      caller->callee != entry.function_name) {
    return false;
  }
  const std::uint8_t control = top().control;
  activations_.push_back({.function = entry.function,
                          .block = 0,
                          .caller = caller,
                          .call_control = control,
                          .control = control});
  PathStep& step = push(Kind::kCall);
  step.segment = caller;
  step.registers = entry.registers + 1;
  step.parameters = std::min(entry.parameters, caller->argument_count);
  return true;
}

// The statements of a segment that returns have been added.
void PathCompiler::come_back() {
  const FlowSegment* const caller = top().caller;
  const FlowList result = all_.back().from;
  PathStep& step = push(Kind::kReturn);
  step.segment = caller;
  step.from = result;
  activations_.pop_back();
  top().pending = nullptr;
  if (is_outer()) called_ = caller;
}

// The latest branch of the path that the segment depends on controls it; if there is none, one
// before the path does, the same one as for others that depend on the same branches.
void PathCompiler::enter_block(const FlowSegment& segment) {
  Activation& now = top();
  now.asked = nullptr;
  for (auto branch = now.branches.rbegin(); branch != now.branches.rend(); ++branch) {
    if (!has(segment.parents, branch->block)) continue;
    now.control = branch->decision;
    return;
  }
  if (!is_outer()) {
    now.control = now.call_control;
    return;
  }
  for (const Asked& asked : now.controls) {
    if (!are_same(asked.parents, segment.parents)) continue;
    now.control = asked.control;
    return;
  }
  now.asked = &segment;
}

void PathCompiler::use_control(PathStep& step) {
  Activation& now = top();
  if (now.asked != nullptr) {
    now.control = this_control();
    now.controls.push_back({now.asked->parents, now.control});
    step.segment = std::exchange(now.asked, nullptr);
    step.control = PathStep::kAsked;
  } else {
    step.control = now.control;
  }
}

bool PathCompiler::statements(const FlowSegment& segment, SegmentId id, std::span<LiveItem> items) {
  Activation& now = top();
  ++steps_;
  if (segment.block >= FlowPrograms::kMaxBlocks) return false;
  if (segment.enters_block || segment.block != now.block) enter_block(segment);
  const FlowPrograms::Edge* const edge = programs_.edge_into(segment, now.block);
  now.block = segment.block;
  const bool branches = segment.end == SegmentEnd::kBranch;
  const bool ends_here = items.data() != nullptr || segment.end != SegmentEnd::kFallThrough;
  if (edge != nullptr || ends_here) {
    PathStep& step = push(Kind::kStatements);
    step.id = id;
    step.items = items;
    step.block = segment.block;
    step.from = segment.from;
    step.branches = branches;
    step.marks = branches && is_outer();
    if (edge != nullptr) step.edge = static_cast<std::uint32_t>(edge - programs_.edges_.data());
    if (ends_here) use_control(step);
    if (branches) {
      // The last one of a block counts.
      std::erase_if(now.branches, [&](const Branch& one) { return one.block == segment.block; });
      now.branches.push_back({segment.block, static_cast<std::uint8_t>(this_control() + 1)});
      if (is_outer()) mark_count_ = std::max(mark_count_, segment.block + 1);
    }
  }
  ++events_;
  return true;
}

void FlowPrograms::add_path(const FlowSegment* pending, std::uint32_t block,
                            std::span<const ShapeId> ids,
                            std::span<const RecordShape* const> shapes) {
  LiveSegment& first = live_[ids[0]];
  std::size_t count = 0;
  for (const Path* path = first.paths; path != nullptr; path = path->next) ++count;
  if (count >= kMostPaths) return;
  Path path;
  PathCompiler compiler(*this, path);
  const FlowSegment* const outer = pending != nullptr ? pending : first.flow;
  if (outer == nullptr) return;
  compiler.begin(pending, block, pending != nullptr ? pending->function : first.continues);
  for (const ShapeId id : ids) {
    if (!compiler.add(id, *shapes[id])) break;
  }
  compiler.finish(outer->registers + 1);
  if (path.count < 2) return;
  path.next = first.paths;
  if (pending == nullptr) {
    const FlowSegment& entered = first.before_count == 0 ? *first.flow : *first.before[0].flow;
    if (entered.enters_block && entered.edge_count == 0) path.from = Path::kAnyBlock;
  }
  first.paths = &paths_.emplace_back(std::move(path));
}

}  // namespace heddle
