// FlowMachine: replays the data and control flow of every thread from segment events and
// descriptors.
//
// The trace says which segments a thread executed and which addresses they touched; the catalog
// says, for each segment, which registers feed which address, value, branch, argument and result
// (trace/catalog.h). Put together they give, exactly, what each access depended on, without a
// machine instruction having been looked at:
//
//   - through registers, phis, parameters and results: the machine keeps a register file for every
//     activation of every thread;
//   - through control: a branch leaves a mark in its block; an access depends on the one of its
//   block's
//     control parents that executed last in the same activation, and through it on whatever
//     controlled that branch. Where no branch of the activation controls it, what controlled the
//     call does;
//   - through memory: not here. What a location remembers differs between the clients.
//
// What flows is the client's: a Tag is a value type (default-constructed: depends on nothing) that
// the client makes at loads and combines with join(). A client has
//
//   using Tag = …;
//   Tag join(ThreadId, Tag, Tag);
//   Tag load(const Event&, EventOrdinal, Tag address, Tag control);      // the value read
//   void store(const Event&, EventOrdinal, Tag data, Tag address, Tag control);
//   Tag update(const Event&, EventOrdinal, Tag data, Tag address, Tag control);   //
//   read-modify-write Tag branch(ThreadId, EventOrdinal segment, SegmentId, Tag condition, Tag
//   control);
//
// branch() returns what the statements under the branch are controlled by.
//
// Activations follow the segments themselves: the entry segment of a function begins one, a return
// ends it. A segment of another function than the running one means that frames were left without a
// return (exception, longjmp): they are dropped. Calls into code that was not instrumented give a
// result that depends on all arguments. Accesses that such code reports (strcpy and kin) read and
// write on behalf of the call.
//
// Memory is bounded by live activations. Numbers in descriptors are taken from a file and trusted
// for nothing but indices below a limit.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

template <typename Client>
class FlowMachine {
 public:
  using Tag = typename Client::Tag;

  FlowMachine(const Catalog& catalog, Client& client) : catalog_(catalog), client_(client) {}

  void on(const Event& event, EventOrdinal ordinal);

  // Every tag that is alive, so that a client can renumber or count what they refer to.
  template <typename Visit>
  void for_each_tag(Visit visit);

 private:
  static constexpr std::uint32_t kMaxRegisters = 1u << 20;
  static constexpr std::uint32_t kMaxBlocks = 1u << 20;
  static constexpr std::size_t kMaxDepth = 1u << 16;

  struct BranchMark {
    std::uint64_t when = 0;  // in steps of the thread; 0 = not executed in this activation
    Tag tag{};
  };

  // A call whose callee is running, or that has returned and not been taken note of yet.
  struct PendingCall {
    bool open = false;
    bool returned = false;
    Register defines = kNoRegister;
    StringId callee = 0;
    std::vector<Tag> arguments;
    Tag result{};
  };

  struct Activation {
    FunctionId function = 0;
    std::uint32_t block = 0;
    Tag call_control{};  // what controlled the call that began it
    std::vector<Tag> registers;
    std::vector<BranchMark> marks;  // by block
    PendingCall call;
  };

  struct Thread {
    std::vector<Activation> stack;  // never shrinks: activations are re-used with their capacity
    std::size_t depth = 0;
    std::uint64_t steps = 0;
    SegmentId segment = 0;  // the one being executed, 0 = none or ended
    EventOrdinal segment_ordinal = 0;
    std::size_t next_item = 0;
    Tag control{};  // of the running segment
  };

  void begin_segment(ThreadId id, Thread& thread, SegmentId segment, EventOrdinal ordinal);
  void end_segment(ThreadId id, Thread& thread);
  void branch_when_due(ThreadId id, Thread& thread);
  void access(ThreadId id, Thread& thread, const Event& event, EventOrdinal ordinal);
  void library_access(ThreadId id, Thread& thread, const Event& event, EventOrdinal ordinal);

  Activation& push(Thread& thread, FunctionId function);
  void enter_function(Thread& thread, const Segment& segment);
  void continue_function(ThreadId id, Thread& thread, const Segment& segment);
  void take_phis(ThreadId id, Activation& frame, const Segment& segment);
  void finish_call(ThreadId id, Activation& frame);
  Tag control_of(const Activation& frame, const Segment& segment) const;

  Tag joined(ThreadId id, const Activation& frame, const Sources& sources);
  static void define(Activation& frame, Register reg, Tag tag) {
    if (reg < frame.registers.size()) frame.registers[reg] = tag;
  }

  const Catalog& catalog_;
  Client& client_;
  std::vector<Thread> threads_;
  std::vector<Tag> phi_values_;  // scratch
};

template <typename Client>
void FlowMachine<Client>::on(const Event& event, EventOrdinal ordinal) {
  const bool segment = event.kind == EventKind::kSegment;
  if (!segment && !is_access(event.kind) && event.kind != EventKind::kThreadEnd) return;
  if (event.thread >= threads_.size()) threads_.resize(event.thread + 1);
  Thread& thread = threads_[event.thread];
  if (segment) {
    begin_segment(event.thread, thread, static_cast<SegmentId>(event.value), ordinal);
  } else if (event.kind == EventKind::kThreadEnd) {
    thread = Thread();
  } else {
    access(event.thread, thread, event, ordinal);
  }
}

template <typename Client>
template <typename Visit>
void FlowMachine<Client>::for_each_tag(Visit visit) {
  for (Thread& thread : threads_) {
    visit(thread.control);
    for (std::size_t i = 0; i < thread.depth; ++i) {
      Activation& frame = thread.stack[i];
      visit(frame.call_control);
      for (Tag& tag : frame.registers) visit(tag);
      for (BranchMark& mark : frame.marks) visit(mark.tag);
      for (Tag& tag : frame.call.arguments) visit(tag);
      visit(frame.call.result);
    }
  }
}

template <typename Client>
void FlowMachine<Client>::begin_segment(ThreadId id, Thread& thread, SegmentId number,
                                        EventOrdinal ordinal) {
  end_segment(id, thread);
  const Segment& segment = catalog_.segment(number);
  ++thread.steps;
  if (segment.block == 0 && segment.index == 0) {
    enter_function(thread, segment);
  } else {
    continue_function(id, thread, segment);
  }
  Activation& frame = thread.stack[thread.depth - 1];
  thread.segment = number;
  thread.segment_ordinal = ordinal;
  thread.next_item = 0;
  thread.control = control_of(frame, segment);
  branch_when_due(id, thread);
}

// A branch happens right after the last access of its segment.
template <typename Client>
void FlowMachine<Client>::branch_when_due(ThreadId id, Thread& thread) {
  const Segment& segment = catalog_.segment(thread.segment);
  if (segment.end == SegmentEnd::kBranch && thread.next_item == segment.items.size())
    end_segment(id, thread);
}

// The other ends wait until the thread's next segment begins, because accesses of library code may
// still belong to a call.
template <typename Client>
void FlowMachine<Client>::end_segment(ThreadId id, Thread& thread) {
  if (thread.segment == 0 || thread.depth == 0) return;
  const Segment& segment = catalog_.segment(thread.segment);
  const SegmentId number = thread.segment;
  thread.segment = 0;
  Activation& frame = thread.stack[thread.depth - 1];
  switch (segment.end) {
    case SegmentEnd::kFallThrough:
      break;
    case SegmentEnd::kBranch: {
      if (segment.block >= kMaxBlocks) break;
      if (segment.block >= frame.marks.size()) frame.marks.resize(segment.block + 1);
      const Tag condition = joined(id, frame, segment.end_from);
      frame.marks[segment.block] = {thread.steps, client_.branch(id, thread.segment_ordinal, number,
                                                                 condition, thread.control)};
      break;
    }
    case SegmentEnd::kCall: {
      PendingCall& call = frame.call;
      call.open = true;
      call.returned = false;
      call.defines = segment.defines;
      call.callee = segment.callee;
      call.result = Tag();
      call.arguments.clear();
      for (const Sources& sources : segment.arguments)
        call.arguments.push_back(joined(id, frame, sources));
      break;
    }
    case SegmentEnd::kReturn: {
      const Tag result = joined(id, frame, segment.end_from);
      if (--thread.depth > 0) {
        PendingCall& call = thread.stack[thread.depth - 1].call;
        if (call.open) {
          call.returned = true;
          call.result = result;
        }
      }
      break;
    }
    case SegmentEnd::kUnwind:
      --thread.depth;
      break;
  }
}

template <typename Client>
typename FlowMachine<Client>::Activation& FlowMachine<Client>::push(Thread& thread,
                                                                    FunctionId function) {
  if (thread.depth >= kMaxDepth) thread.depth = 0;  // a trace that never returns: start afresh
  if (thread.depth == thread.stack.size()) thread.stack.emplace_back();
  Activation& frame = thread.stack[thread.depth++];
  std::uint32_t registers = catalog_.function(function).registers;
  if (registers > kMaxRegisters) registers = kMaxRegisters;
  frame.function = function;
  frame.block = 0;
  frame.call_control = Tag();
  frame.registers.assign(registers, Tag());
  frame.marks.clear();
  frame.call.open = false;
  return frame;
}

template <typename Client>
void FlowMachine<Client>::enter_function(Thread& thread, const Segment& segment) {
  const Tag control = thread.depth > 0 ? thread.control : Tag();
  Activation& frame = push(thread, segment.function);
  frame.call_control = control;
  if (thread.depth < 2) return;
  const PendingCall& call = thread.stack[thread.depth - 2].call;
  const StringId name = catalog_.function(segment.function).linkage_name;
  // A callback from library code (qsort's comparison) is not the callee, and its parameters come
  // from somewhere unknown.
  if (!call.open || (call.callee != 0 && call.callee != name)) return;
  for (std::size_t i = 0;
       i < call.arguments.size() && i < catalog_.function(segment.function).parameters; ++i) {
    define(frame, static_cast<Register>(i), call.arguments[i]);
  }
}

template <typename Client>
void FlowMachine<Client>::continue_function(ThreadId id, Thread& thread, const Segment& segment) {
  while (thread.depth > 0 && thread.stack[thread.depth - 1].function != segment.function)
    --thread.depth;
  if (thread.depth == 0) push(thread, segment.function);
  Activation& frame = thread.stack[thread.depth - 1];
  finish_call(id, frame);
  if (segment.index == 0) take_phis(id, frame, segment);
  frame.block = segment.block;
}

template <typename Client>
void FlowMachine<Client>::finish_call(ThreadId id, Activation& frame) {
  if (!frame.call.open) return;
  Tag result = frame.call.result;
  if (!frame.call.returned) {
    for (const Tag argument : frame.call.arguments) result = client_.join(id, result, argument);
  }
  define(frame, frame.call.defines, result);
  frame.call.open = false;
}

// All phis of a block read the registers as they were on the edge, before any of them is set.
template <typename Client>
void FlowMachine<Client>::take_phis(ThreadId id, Activation& frame, const Segment& segment) {
  phi_values_.clear();
  for (const Phi& phi : segment.phis) {
    Tag value{};
    for (const Phi::Incoming& incoming : phi.incoming) {
      if (incoming.block == frame.block) value = joined(id, frame, incoming.sources);
    }
    phi_values_.push_back(value);
  }
  for (std::size_t i = 0; i < segment.phis.size(); ++i)
    define(frame, segment.phis[i].defines, phi_values_[i]);
}

template <typename Client>
typename FlowMachine<Client>::Tag FlowMachine<Client>::control_of(const Activation& frame,
                                                                  const Segment& segment) const {
  const BranchMark* parent = nullptr;
  for (const std::uint32_t block : segment.control_parents) {
    if (block >= frame.marks.size() || frame.marks[block].when == 0) continue;
    if (parent == nullptr || frame.marks[block].when > parent->when) parent = &frame.marks[block];
  }
  return parent != nullptr ? parent->tag : frame.call_control;
}

template <typename Client>
typename FlowMachine<Client>::Tag FlowMachine<Client>::joined(ThreadId id, const Activation& frame,
                                                              const Sources& sources) {
  Tag tag{};
  for (const Register reg : sources) {
    if (reg < frame.registers.size()) tag = client_.join(id, tag, frame.registers[reg]);
  }
  return tag;
}

template <typename Client>
void FlowMachine<Client>::access(ThreadId id, Thread& thread, const Event& event,
                                 EventOrdinal ordinal) {
  const Segment& segment = catalog_.segment(thread.segment);
  if (thread.depth == 0 || thread.next_item >= segment.items.size() ||
      segment.items[thread.next_item].site != event.site) {
    library_access(id, thread, event, ordinal);
    return;
  }
  const AccessItem& item = segment.items[thread.next_item++];
  Activation& frame = thread.stack[thread.depth - 1];
  const Tag address = joined(id, frame, item.address_from);
  if (event.kind == EventKind::kRead) {
    define(frame, item.defines, client_.load(event, ordinal, address, thread.control));
  } else {
    const Tag data = joined(id, frame, item.value_from);
    if (event.kind == EventKind::kWrite) {
      client_.store(event, ordinal, data, address, thread.control);
    } else {
      define(frame, item.defines, client_.update(event, ordinal, data, address, thread.control));
    }
  }
  branch_when_due(id, thread);
}

// An access on behalf of a call into code without descriptors: what it reads goes into the call's
// result, what it writes comes from the arguments and from what it read. Without any call (a trace
// without flow) it depends on nothing.
template <typename Client>
void FlowMachine<Client>::library_access(ThreadId id, Thread& thread, const Event& event,
                                         EventOrdinal ordinal) {
  if (thread.segment != 0 && catalog_.segment(thread.segment).end == SegmentEnd::kCall) {
    const Tag control = thread.control;
    end_segment(id, thread);
    thread.control = control;
  }
  PendingCall* call = thread.depth > 0 && thread.stack[thread.depth - 1].call.open
                          ? &thread.stack[thread.depth - 1].call
                          : nullptr;
  if (event.kind == EventKind::kRead) {
    const Tag value = client_.load(event, ordinal, Tag(), thread.control);
    if (call != nullptr) call->result = client_.join(id, call->result, value);
    return;
  }
  Tag data{};
  if (call != nullptr) {
    data = call->result;
    for (const Tag argument : call->arguments) data = client_.join(id, data, argument);
  }
  if (event.kind == EventKind::kWrite) {
    client_.store(event, ordinal, data, Tag(), thread.control);
  } else {
    const Tag value = client_.update(event, ordinal, data, Tag(), thread.control);
    if (call != nullptr) call->result = client_.join(id, call->result, value);
  }
}

}  // namespace heddle
