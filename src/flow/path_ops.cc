#include "flow/path_steps.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

// A value of more slots gets one of its own.
constexpr std::size_t kMostTogether = 8;

}  // namespace

PathReducer::PathReducer(FlowPrograms& programs, std::uint32_t registers, Path& out)
    : programs_(programs), path_(out), spare_(registers - 1), next_slot_(registers), same_as_{0} {
  Registers& outer = activations_.emplace_back(registers);
  for (Slot slot = 0; slot < registers; ++slot) outer[slot] = {slot};
}

void PathReducer::add(const PathStep& step) {
  same_as_.resize(same_as_.size() + 2);
  switch (step.kind) {
    case PathStep::Kind::kStatements:
      statements(step);
      break;
    case PathStep::Kind::kEnter:
      enter(step);
      break;
    case PathStep::Kind::kLeave:
      leave(step);
      break;
    case PathStep::Kind::kCall:
      call(step);
      break;
    case PathStep::Kind::kReturn: {
      Value result = value_of(top(), step.from);
      activations_.pop_back();
      top()[step.segment->defines] = std::move(result);
      break;
    }
    case PathStep::Kind::kLibraryCall: {
      Value result;
      for (std::uint32_t i = 0; i < step.segment->argument_count; ++i) {
        const Value argument =
            value_of(top(), programs_.argument(step.segment->first_argument + i));
        result.insert(result.end(), argument.begin(), argument.end());
      }
      std::sort(result.begin(), result.end());
      result.erase(std::unique(result.begin(), result.end()), result.end());
      top()[step.segment->defines] = std::move(result);
      break;
    }
  }
}

void PathReducer::statements(const PathStep& step) {
  const std::size_t number = same_as_.size() - 2;
  if (step.edge != PathStep::kNoEdge) {
    const FlowPrograms::Edge& edge = programs_.edge(step.edge);
    std::vector<Value> values;
    for (std::uint32_t i = 0; i < edge.phi_count; ++i) {
      const FlowPrograms::Phi& phi = programs_.phi(edge.first_phi + i);
      values.push_back(phi.known ? value_of(top(), phi.sources) : Value());
    }
    for (std::uint32_t i = 0; i < edge.phi_count; ++i)
      top()[programs_.phi(edge.first_phi + i).defines] = std::move(values[i]);
  }
  std::uint8_t control = static_cast<std::uint8_t>(number);
  if (step.control == PathStep::kAsked) {
    PathOp& op = push(PathOp::Kind::kAskControl, step);
    op.decides = control;
    op.segment = step.segment;
  } else {
    control = same_as_[step.control];
  }
  same_as_[number] = control;
  std::uint32_t ordinal = step.ordinal;
  for (const LiveItem& item : step.items) {
    access(step, item, ++ordinal);
    path_.ops.back().control = control;
  }
  if (step.branches) branch(step, control);
}

void PathReducer::access(const PathStep& step, const LiveItem& item, std::uint32_t ordinal) {
  LiveItem& copy = items_.emplace_back(item);
  copy.address = list(value_of(top(), item.address));
  copy.value = list(value_of(top(), item.value));
  copy.defines = item.kind == EventKind::kWrite ? spare_ : define(item.defines);
  const PathOp::Kind kind = item.kind == EventKind::kRead    ? PathOp::Kind::kRead
                            : item.kind == EventKind::kWrite ? PathOp::Kind::kWrite
                                                             : PathOp::Kind::kUpdate;
  push(kind, step).ordinal = ordinal;
  item_ops_.push_back(path_.ops.size() - 1);
  if (!calls_.empty()) calls_.back().accesses = true;
}

// A branch on no register is none, but for its mark.
void PathReducer::branch(const PathStep& step, std::uint8_t control) {
  const std::size_t number = same_as_.size() - 1;
  std::uint8_t decided = control;
  if (step.from.size() != 0) {
    const FlowList from = list(value_of(top(), step.from));
    decided = static_cast<std::uint8_t>(number);
    PathOp& op = push(PathOp::Kind::kBranch, step);
    op.control = control;
    op.decides = decided;
    op.from = from;
    op.id = step.id;
  }
  same_as_[number] = decided;
  if (!step.marks) return;
  std::erase_if(path_.marks, [&](const PathMark& mark) { return mark.block == step.block; });
  path_.marks.push_back({step.block, step.step, decided});
}

void PathReducer::enter(const PathStep& step) {
  calls_.push_back({path_.ops.size(), false});
  push(PathOp::Kind::kEnter, step).id = step.function;
}

// Nobody asks for the stack of a call without accesses.
void PathReducer::leave(const PathStep& step) {
  const Call call = calls_.back();
  calls_.pop_back();
  if (call.accesses) {
    if (!calls_.empty()) calls_.back().accesses = true;
    push(PathOp::Kind::kLeave, step).id = step.function;
  } else {
    path_.ops.erase(path_.ops.begin() + static_cast<std::ptrdiff_t>(call.op));
  }
}

void PathReducer::call(const PathStep& step) {
  Registers registers(step.registers);
  for (std::uint32_t i = 0; i < step.parameters; ++i)
    registers[i] = value_of(top(), programs_.argument(step.segment->first_argument + i));
  activations_.push_back(std::move(registers));
}

PathReducer::Value PathReducer::value_of(const Registers& registers, FlowList list) {
  Value out;
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    const Value& one = registers[list[i]];
    out.insert(out.end(), one.begin(), one.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() <= kMostTogether) return out;
  const Slot together = own_slot();
  join(together, out);
  return {together};
}

// Where the value of an access goes that sets this register of the top activation.
PathReducer::Slot PathReducer::define(std::uint32_t reg) {
  if (reg + 1 == top().size()) return spare_;
  const bool stays = activations_.size() == 1 && !is_used(reg, reg);
  const Slot slot = stays ? reg : own_slot();
  top()[reg] = {slot};
  return slot;
}

// By another register than this one of the outermost activation.
bool PathReducer::is_used(Slot slot, std::uint32_t but_for) const {
  for (const Registers& registers : activations_) {
    for (std::uint32_t reg = 0; reg < registers.size(); ++reg) {
      if (&registers == activations_.data() && reg == but_for) continue;
      if (std::binary_search(registers[reg].begin(), registers[reg].end(), slot)) return true;
    }
  }
  return false;
}

FlowList PathReducer::list(const Value& value) {
  return programs_.list(value);
}

PathOp& PathReducer::push(PathOp::Kind kind, const PathStep& step) {
  PathOp& op = path_.ops.emplace_back();
  op.kind = kind;
  op.execution = step.execution;
  op.ordinal = step.ordinal;
  return op;
}

void PathReducer::join(Slot slot, const Value& value) {
  PathOp& op = path_.ops.emplace_back();
  op.kind = PathOp::Kind::kJoin;
  op.id = slot;
  op.from = list(value);
}

void PathReducer::finish(std::uint8_t last) {
  put_back();
  path_.last = last == PathStep::kAsked ? last : same_as_[last];
  path_.slots = next_slot_;
  const std::span<LiveItem> items = programs_.keep(std::move(items_));
  for (std::size_t i = 0; i < items.size(); ++i) path_.ops[item_ops_[i]].item = &items[i];
}

// Into the registers that hold something else now. One that another one still needs has to wait;
// where all do, one of them is put aside.
void PathReducer::put_back() {
  Registers& outer = activations_.front();
  std::vector<Slot> left;
  for (Slot slot = 0; slot < spare_; ++slot) {
    if (outer[slot] != Value{slot}) left.push_back(slot);
  }
  const auto is_free = [&](Slot slot) {
    return std::none_of(left.begin(), left.end(), [&](Slot other) {
      return other != slot && std::binary_search(outer[other].begin(), outer[other].end(), slot);
    });
  };
  while (!left.empty()) {
    auto next = std::find_if(left.begin(), left.end(), is_free);
    if (next == left.end()) {
      next = left.begin();
      const Slot aside = own_slot();
      join(aside, {*next});
      for (const Slot other : left) {
        Value& value = outer[other];
        std::replace(value.begin(), value.end(), *next, aside);
        std::sort(value.begin(), value.end());
      }
    }
    join(*next, outer[*next]);
    left.erase(next);
  }
}

}  // namespace heddle
