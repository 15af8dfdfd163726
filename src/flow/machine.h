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
//     block's control parents that executed last in the same activation, and through it on whatever
//     controlled that branch. Where no branch of the activation controls it, what controlled the
//     call does;
//   - through choice: a phi's value was put into its register on an edge that something controlled,
//     even when the value itself came from nowhere (`x = 1` under an `if`, stored after it);
//   - through memory: not here. What a location remembers differs between the clients.
//
// What flows is the client's. A Tag says what a value came from, a Control what let a statement
// happen; both are value types, and default-constructed they mean "nothing". A client has
//
//   Tag join(ThreadId, Tag, Tag);
//   Tag load(const Event&, EventOrdinal, TagList<Tag> address, Control);       // the value read
//   void store(const Event&, EventOrdinal, TagList<Tag> data, TagList<Tag> address, Control);
//   Tag update(const Event&, EventOrdinal, TagList<Tag> data, TagList<Tag> address, Control);
//   Control branch(ThreadId, EventOrdinal, SegmentId, Tag condition, Control outer);
//   Tag choose(ThreadId, Tag value, Control edge);                             // a phi
//   bool choices() const;  // choose() may make something of nothing; the same for ever
//
// and may have a quick way for the accesses of executions, which says no where it is not enough. To
// such a client a branch whose condition is computed from no register is none: it is not told.
//
//   void prepare(LiveItem&);  // sets what the client wants to know of it beforehand
//   void turn(ThreadId);  // the accesses at a glance that follow are this thread's
//   void entered(ThreadId, FunctionId, SiteId);  // an Enter among the executions, by that thread
//   void left(ThreadId, FunctionId);  // a Leave
//   void expect(Address);  // it will soon access this …
//   void expect_beyond(Address);  // … very soon, and what it remembers of it leads elsewhere
//   bool jumps(LiveItem&, Address, ThreadId);  // whether that is far from where the last such led
//   void rest();  // between rounds of a loop: it may look after itself, and call for_each()
//   bool load_at_a_glance(LiveItem&, Address, ThreadId, EventOrdinal, Tag& value);
//   bool store_at_a_glance(LiveItem&, Address, ThreadId, EventOrdinal, const Tag* registers,
//                          Control);
//   // For rounds of loops that are like one that was watched (flow/rounds.h):
//   Tag updated(Tag);  // the same, as it would be said now
//   bool begin_sight(const LiveItem&, Address, Sight&);  // what is there before the round
//   Knowledge knowledge();
//   // Whether nothing is known now that was not then, but of memory.
//   bool is_as_good_as(const Knowledge&);
//   // What is there after it; whether the same is bound to happen where the same is seen.
//   // `others` are the accesses before it in the round.
//   bool end_sight(const LiveItem&, Address, ThreadId, const Tag* registers, Control,
//                  std::span<const Sight> others, Sight&);
//   // Whether what was seen of a round, and of the one after it, is there again, and would be done
//   // again, at another place and time, as long as this has not changed:
//   std::uint64_t generation();
//   bool recall(const LiveItem&, Address, ThreadId, const Tag* registers, Control, Sight&, Sight&);
//   bool end_watch();  // whether that explains all that is known now
//   bool is_seen(const Sight&, const LiveItem&, Address);  // whether that is there, too
//   bool is_seen_beyond(Sight&, const LiveItem&, Address);  // the same, at second sight
//   void see_again(const Sight&, LiveItem&, Address, ThreadId, EventOrdinal);  // it happens there
//   // The same for the first of so many rounds, as long as that is there, or some of them; how
//   // many, an even number.
//   std::uint64_t go_through(const Stretch&, std::uint64_t rounds, ThreadId, EventOrdinal);
//
// update() is a read-modify-write; branch() returns what the statements under it are controlled by;
// its ordinal is the segment event's.
//
// Activations follow the segments themselves: the entry segment of a function begins one, a return
// ends it. A segment of another function than the running one means that frames were left without a
// return (exception, longjmp): they are dropped. Where the function is recursive, Enter and Leave
// tell which of its activations goes on: the collector leaves what an exception or a jump left.
// Calls into code that was not instrumented give a result that depends on all arguments. Accesses
// that such code reports (strcpy and kin) read and write on behalf of the call.
//
// A running program's segments are taken as executions (trace/execution.h), without events in
// between; what follows from them is the same.
//
// Memory is bounded by live activations.
#pragma once

#include "flow/program.h"
#include "flow/round_sources.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace heddle {

// What several registers hold. Two words, so that it travels in registers itself.
template <typename Tag>
class TagList {
 public:
  TagList() : TagList(nullptr, &kNone) {}
  // `list`: how many, then which.
  TagList(const Tag* registers, const Register* list) : registers_(registers), list_(list) {}

  std::uint32_t size() const { return list_[0]; }
  Tag operator[](std::uint32_t i) const { return registers_[list_[i + 1]]; }

 private:
  static constexpr Register kNone = 0;

  const Tag* registers_;
  const Register* list_;
};

template <typename Client>
class FlowMachine {
 public:
  using Tag = typename Client::Tag;
  using Control = typename Client::Control;

  // `hot`: how often a segment comes before a path is looked for; clients without a quick way have
  // none.
  FlowMachine(const Catalog& catalog, Client& client, std::uint8_t hot = 0)
      : programs_(catalog, client.choices()), client_(client), hot_(hot) {}

  void on(const Event& event, EventOrdinal ordinal);

  // The same for the segments and accesses that `batch` begins with, up to the first other event;
  // `stop()` is asked after every access. Returns how many events were taken.
  template <typename Stop>
  std::size_t run(std::span<const Event> batch, EventOrdinal first, Stop stop);

  // The same for the executions of segments that `executions` begins with; `after()` is called
  // after every one. To a client with a quick way also calls are told.
  struct Progress {
    std::size_t executions = 0;  // how many were taken
    EventOrdinal next = 0;       // the ordinal of what comes next
  };
  template <typename After>
  Progress run(std::span<const Execution> executions, std::span<const RecordShape* const> shapes,
               EventOrdinal first, After after);

  // Looks at some of a batch to find out which accesses are far from each other; memory that is
  // gone through step by step, the processor asks for by itself.
  void sample(std::span<const Execution> executions, std::span<const RecordShape* const> shapes);

  // An Enter or a Leave.
  void call(const Event& event) {
    call(thread_of(event.thread), static_cast<FunctionId>(event.value),
         event.kind == EventKind::kEnter);
  }

  // Every tag and control that is alive, so that a client can renumber what they refer to.
  template <typename VisitTag, typename VisitControl>
  void for_each(VisitTag visit_tag, VisitControl visit_control);

 private:
  static constexpr std::size_t kMaxDepth = 1u << 16;
  static constexpr std::uint32_t kLargestRange = 0x7fffffffu;  // Event::size has 31 bits
  static constexpr std::ptrdiff_t kAhead = 6;                  // executions
  static constexpr std::ptrdiff_t kSoon = 3;                   // the same
  static constexpr std::uint32_t kSampled = 61;        // one of so many; few loops have that length
  static constexpr std::uint32_t kSampledBatches = 8;  // the same
  static constexpr std::uint64_t kFar = std::uint64_t{1} << 14;
  static constexpr std::size_t kMostSights = 8;
  static constexpr std::uint64_t kStretch = 4;  // rounds that are worth going through at once
  static constexpr std::uint32_t kLongestPause = 16;
  static constexpr std::uint64_t kRoundsAtOnce =
      4096;                                          // of a loop's record, before the client rests
  static constexpr std::uint64_t kMadeAtOnce = 256;  // the same, as executions
  static constexpr bool kGlances = requires(Client& client) { client.turn(ThreadId{}); };

  struct BranchMark {
    std::uint64_t when = 0;  // in steps of the thread
    Control control{};
  };

  // A call whose callee is running, or that has returned and not been taken note of yet.
  struct PendingCall {
    bool open = false;
    bool returned = false;
    Register defines = 0;
    StringId callee = 0;
    std::vector<Tag> arguments;
    Tag result{};
  };

  struct Activation {
    FunctionId function = 0;
    std::uint32_t block = 0;
    std::uint32_t registers_used = 0;
    bool of_pending_call = false;   // and not a callback of library code
    std::size_t calls_below = 0;    // Enter events in force when it began, its own included
    std::uint64_t began = 0;        // step; older marks are of former users of this slot
    Control call_control{};         // what controlled the call that began it
    Control control{};              // of the segment it is in
    std::vector<Tag> registers;     // the last is the spare one
    std::vector<BranchMark> marks;  // by block
    std::uint32_t mark_count = 0;   // of them
    PendingCall call;
  };

  // `running` is the activation whose next segment is its own business: no call of it is open and
  // nothing has been entered or left since its last segment. nullptr: nobody knows.
  struct Thread {
    Activation* running = nullptr;
    std::vector<Activation> stack;  // never shrinks: activations are re-used with their capacity
    std::size_t depth = 0;
    std::uint64_t steps = 0;
    const FlowSegment* segment = nullptr;  // the one being executed; nullptr: none, or ended
    SegmentId segment_id = 0;
    EventOrdinal segment_ordinal = 0;
    std::uint32_t next_item = 0;
    std::vector<FunctionId> calls;  // Enter events in force
    Activation& top() { return stack[depth - 1]; }
  };

  Thread& thread_of(ThreadId id) {
    if (id != current_id_) {
      if (id >= threads_.size()) threads_.resize(id + 1);
      current_id_ = id;
      current_ = &threads_[id];
    }
    return *current_;
  }
  void begin_segment(ThreadId id, Thread& thread, SegmentId number, EventOrdinal ordinal) {
    if (thread.segment != nullptr) end_segment(id, thread);
    const FlowSegment* segment = programs_.find(number);
    if (segment != nullptr) begin_segment(id, thread, *segment, number, ordinal);
  }
  void begin_segment(ThreadId id, Thread& thread, const FlowSegment& segment, SegmentId number,
                     EventOrdinal ordinal);
  void enter_segment(ThreadId id, Thread& thread, const FlowSegment& segment);
  // Half of the time goes by waiting for what a client remembers of the memory that is accessed. It
  // must be inlined: a compiler leaves out a call of what does nothing but ask for memory.
  [[gnu::always_inline]] void expect(ThreadId id, const LiveSegment* segments,
                                     const Execution& ahead) {
    if constexpr (kGlances) {
      const LiveSegment& segment = segments[ahead.shape];
      if (!segment.scattered || ahead.who != id) return;
      for (const LiveItem& item : std::span(segment.items, segment.item_count)) {
        if (item.scattered) client_.expect(item.offset + ahead.words[item.base]);
      }
    }
  }
  [[gnu::always_inline]] void expect_soon(ThreadId id, const LiveSegment* segments,
                                          const Execution& soon) {
    if constexpr (kGlances) {
      const LiveSegment& segment = segments[soon.shape];
      if (!segment.jumps || soon.who != id) return;
      for (const LiveItem& item : std::span(segment.items, segment.item_count)) {
        if (item.jumps) client_.expect_beyond(item.offset + soon.words[item.base]);
      }
    }
  }
  // Of the executions that come a few after this one.
  [[gnu::always_inline]] void expect_next(ThreadId id, const LiveSegment* segments,
                                          const Execution* execution, const Execution* end) {
    if (end - execution <= kAhead) return;
    expect(id, segments, execution[kAhead]);
    expect_soon(id, segments, execution[kSoon]);
  }
  // The record of a whole loop (flow/loops.h); what comes next has the ordinal that it returns.
  template <typename After>
  EventOrdinal loop(const RecordShape& shape, const Execution& record,
                    std::span<const RecordShape* const> shapes, EventOrdinal ordinal, After after);
  bool can_repeat(ShapeId id, std::span<const RecordShape* const> shapes);
  template <typename After>
  EventOrdinal rounds_of(const RecordShape& shape, const Execution& record, std::uint64_t first,
                         std::uint64_t count, EventOrdinal ordinal, After after);
  template <typename After>
  EventOrdinal made_again(const RecordShape& shape, const Execution& record, std::uint64_t first,
                          std::uint64_t count, std::span<const RecordShape* const> shapes,
                          EventOrdinal ordinal, After after, std::size_t parts = ~std::size_t{0});
  template <typename Word>  // word(item): that of the item's address
  void sample(LiveSegment& segment, ThreadId id, Word word) {
    segment.scattered = false;
    segment.jumps = false;
    for (LiveItem& item : segment.all_items()) {
      const Address where = item.offset + word(item);
      item.scattered = where - item.sampled + kFar > 2 * kFar;
      item.sampled = where;
      segment.scattered = segment.scattered || item.scattered;
      if constexpr (kGlances) {
        item.jumps = client_.jumps(item, where, id);
        segment.jumps = segment.jumps || item.jumps;
      }
    }
  }
  void sample(LiveSegment& live, ThreadId id, const RecordedRounds& rounds);
  void compile(ShapeId id, const RecordShape& shape);
  void call(Thread& thread, const RecordShape& shape, const Execution& execution);
  static void call(Thread& thread, FunctionId function, bool enters) {
    thread.running = nullptr;
    if (enters) {
      thread.calls.push_back(function);
    } else if (!thread.calls.empty() && thread.calls.back() == function) {
      thread.calls.pop_back();
    } else {
      leave(thread, function);
    }
  }
  void execute(ThreadId id, Thread& thread, const LiveSegment& segment, const std::uint64_t* words,
               EventOrdinal ordinal);
  // Executions that come one after another again and again (flow/paths.h).
  const Path* find_path(const Thread& thread, LiveSegment* segments,
                        std::span<const RecordShape* const> shapes, const Execution* first,
                        const Execution* end);
  void learn_path(const Thread& thread, const LiveSegment* segments,
                  std::span<const RecordShape* const> shapes, const Execution* first,
                  const Execution* end);
  void follow(ThreadId id, Thread& thread, const Path& path, const LiveSegment* segments,
              const Execution* first, const Execution* end, EventOrdinal ordinal);
  // A loop whose rounds are executions of one segment.
  using Held = std::array<Tag, kMostSights>;        // by the registers of its items
  using Places = std::array<Address, kMostSights>;  // of its items
  struct Watched {
    bool moves = false;  // some memory does not stay as it is
    Held gave;
    std::array<Sight, kMostSights> sights;
    Places where;
  };
  // What was watched last, for when the loop comes again; and what it depended on but memory.
  struct Steady {
    bool known = false;
    ThreadId thread{};
    std::uint32_t period = 1;  // how many were watched
    std::uint64_t generation{};
    std::vector<Register> uses;
    std::vector<Tag> held;  // by these
    std::array<Watched, 2> watched;
  };
  struct Rounds {
    Thread& thread;
    Activation& frame;
    LiveSegment& live;
    Steady& steady;
    std::array<Control, FlowPrograms::kMostBefore + 1> outer;  // of the branches, the last its own
    bool stable = false;  // in the last round every branch decided as it had before
    Held held;            // before the first round that was watched

    Rounds(Thread& of, LiveSegment& segment, Steady& known)
        : thread(of), frame(*of.running), live(segment), steady(known) {}
  };
  // `Source` is where the rounds come from: ExecutedRounds, RecordedRounds.
  template <typename Source, typename After>
  void repeat(ThreadId id, Thread& thread, LiveSegment& live, Source& source, EventOrdinal& ordinal,
              After after);
  Steady& steady_of(const LiveSegment& live);
  void remember(ThreadId id, Rounds& rounds);
  bool recall(ThreadId id, Rounds& rounds, const std::uint64_t* words, EventOrdinal ordinal);
  static bool are_same_places(const LiveSegment& live, const Places& then, const Places& now);
  [[gnu::always_inline]] void expect_rounds(ThreadId id, const LiveSegment& live,
                                            const ExecutedRounds& rounds) {
    if (live.scattered || live.jumps)
      expect_next(id, programs_.live(), rounds.next(), rounds.end());
  }
  [[gnu::always_inline]] void expect_rounds(ThreadId id, const LiveSegment& live,
                                            const RecordedRounds& rounds);
  void round(ThreadId id, Rounds& rounds, const std::uint64_t* words, EventOrdinal ordinal);
  bool phis_stay(ThreadId id, const Rounds& rounds);
  void update_registers(Rounds& rounds);
  static void hold(const Rounds& rounds, Held& held);
  static void give(Rounds& rounds, const Held& held);
  static bool is_back(const Rounds& rounds);
  bool watch(ThreadId id, Rounds& rounds, Watched& watched, const std::uint64_t* words,
             EventOrdinal ordinal);
  bool go_on(ThreadId id, Rounds& rounds, Watched& watched, const std::uint64_t* words,
             EventOrdinal ordinal);
  bool move_on(ThreadId id, const LiveSegment& live, const Watched& watched,
               const std::uint64_t* words, EventOrdinal ordinal);
  template <typename Source>
  std::uint64_t go_through(ThreadId id, Rounds& rounds, std::uint32_t turn, const Source& source,
                           EventOrdinal ordinal);
  bool decides_as_before(ThreadId id, const Rounds& rounds, EventOrdinal ordinal);
  bool ends_as_before(ThreadId id, const Rounds& rounds, EventOrdinal ordinal);
  void same_round(ThreadId id, Rounds& rounds, const std::uint64_t* words, EventOrdinal ordinal);
  void settle(Rounds& rounds);
  void execute_items(ThreadId id, Tag* registers, Control control, std::span<LiveItem> items,
                     const std::uint64_t* words, EventOrdinal ordinal);
  void execute_items_here(ThreadId id, Tag* registers, Control control, std::span<LiveItem> items,
                          const std::uint64_t* words, EventOrdinal ordinal);
  static Event event_of(const LiveItem& item, ThreadId id, const std::uint64_t* words);
  void access_slowly(ThreadId id, Tag* registers, Control control, const LiveItem& item,
                     const std::uint64_t* words, EventOrdinal ordinal);
  void execute_slowly(ThreadId id, Thread& thread, const LiveSegment& segment,
                      const std::uint64_t* words, EventOrdinal ordinal);
  void end_segment(ThreadId id, Thread& thread);
  void branch_when_due(ThreadId id, Thread& thread) {
    if (thread.segment->end == SegmentEnd::kBranch &&
        thread.next_item == thread.segment->item_count) {
      end_segment(id, thread);
    }
  }
  template <typename Stop>
  std::size_t items(ThreadId id, Thread& thread, std::span<const Event> batch, EventOrdinal first,
                    Stop stop);
  bool find_item(Thread& thread, SiteId site);
  void access(Thread& thread, const Event& event, EventOrdinal ordinal);
  void library_access(Thread& thread, const Event& event, EventOrdinal ordinal);
  void other(Thread& thread, const Event& event);
  static void leave(Thread& thread, FunctionId function);

  Activation& push(Thread& thread, const FlowSegment& segment);
  void enter_function(Thread& thread, const FlowSegment& segment);
  void continue_function(ThreadId id, Thread& thread, const FlowSegment& segment);
  void take_phis(ThreadId id, Activation& frame, const FlowSegment& segment);
  void take_phis(ThreadId id, Activation& frame, const FlowPrograms::Edge& edge) {
    take_phis(id, frame.registers.data(), frame.control, edge);
  }
  // `control`: of the edge.
  void take_phis(ThreadId id, Tag* registers, Control control, const FlowPrograms::Edge& edge);
  // What the statements under the branch are controlled by.
  Control take_branch(ThreadId id, Activation& frame, const FlowSegment& segment, SegmentId number,
                      std::uint64_t step, EventOrdinal ordinal);
  Tag value_of(ThreadId id, const Tag* registers, Control control, const FlowPrograms::Phi& phi) {
    if (!phi.known) return {};
    return client_.choose(id, joined(id, registers, phi.sources), control);
  }
  void finish_call(ThreadId id, Activation& frame);
  Control control_of(const Activation& frame, const FlowSegment& segment) const;

  TagList<Tag> tags(const Activation& frame, FlowList list) const {
    return {frame.registers.data(), list.numbers()};
  }
  Tag joined(ThreadId id, const Activation& frame, FlowList list) {
    return joined(id, frame.registers.data(), list);
  }
  Tag joined(ThreadId id, const Tag* registers, FlowList list) {
    const std::uint32_t count = list.size();
    if (count == 0) return {};
    Tag tag = registers[list[0]];
    for (std::uint32_t i = 1; i < count; ++i) tag = client_.join(id, tag, registers[list[i]]);
    return tag;
  }

  FlowPrograms programs_;
  Client& client_;
  std::uint8_t hot_;
  std::vector<Thread> threads_;
  ThreadId current_id_ = ~0u;
  Thread* current_ = nullptr;  // of that number, in threads_
  std::vector<Tag> scratch_;
  std::vector<Register> in_order_;
  std::uint32_t batches_ = 0;
  std::vector<std::uint64_t> loop_words_;  // of the rounds that are being executed
  std::vector<Execution> loop_executions_;
  std::vector<std::unique_ptr<Steady>> steady_;  // by the number of the segment
};

template <typename Client>
void FlowMachine<Client>::on(const Event& event, EventOrdinal ordinal) {
  Thread& thread = thread_of(event.thread);
  if (is_access(event.kind)) {
    access(thread, event, ordinal);
  } else if (event.kind == EventKind::kSegment) {
    begin_segment(event.thread, thread, static_cast<SegmentId>(event.value), ordinal);
  } else {
    other(thread, event);
  }
}

template <typename Client>
template <typename Stop>
std::size_t FlowMachine<Client>::run(std::span<const Event> batch, EventOrdinal first, Stop stop) {
  std::size_t taken = 0;
  while (taken < batch.size()) {
    const Event& event = batch[taken];
    if (event.kind == EventKind::kSegment) {
      Thread& thread = thread_of(event.thread);
      begin_segment(event.thread, thread, static_cast<SegmentId>(event.value), first + taken);
      ++taken;
      // All but few accesses come right behind their segment.
      if (thread.segment != nullptr && thread.segment->item_count != 0) {
        taken += items(event.thread, thread, batch.subspan(taken), first + taken, stop);
      }
    } else if (is_access(event.kind)) {
      on(event, first + taken);
      ++taken;
    } else {
      return taken;
    }
    if (stop()) return taken;
  }
  return taken;
}

// The accesses of the segment that has just begun, as far as they are there without a gap.
template <typename Client>
template <typename Stop>
std::size_t FlowMachine<Client>::items(ThreadId id, Thread& thread, std::span<const Event> batch,
                                       EventOrdinal first, Stop stop) {
  const std::uint32_t count = thread.segment->item_count;
  const FlowItem* const items = &programs_.item(thread.segment->first_item);
  const Activation& frame = thread.top();
  Tag* const registers = thread.top().registers.data();
  const Control control = frame.control;
  std::uint32_t i = 0;
  while (i < count && i < batch.size()) {
    const Event& event = batch[i];
    const FlowItem& item = items[i];
    if (event.site != item.site || event.thread != id || !is_access(event.kind)) break;
    const EventOrdinal ordinal = first + i;
    const TagList<Tag> address = tags(frame, item.address);
    ++i;
    if (event.kind == EventKind::kRead) {
      registers[item.defines] = client_.load(event, ordinal, address, control);
    } else if (event.kind == EventKind::kWrite) {
      client_.store(event, ordinal, tags(frame, item.value), address, control);
    } else {
      registers[item.defines] =
          client_.update(event, ordinal, tags(frame, item.value), address, control);
    }
    if (stop()) break;
  }
  thread.next_item = i;
  branch_when_due(id, thread);
  return i;
}

template <typename Client>
void FlowMachine<Client>::other(Thread& thread, const Event& event) {
  thread.running = nullptr;
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      call(event);
      break;
    case EventKind::kThreadEnd:
      thread = Thread();
      break;
    default:  // an item that touches no memory: a fence, the test of a guard
      if (thread.segment != nullptr && event.site != 0 && find_item(thread, event.site)) {
        ++thread.next_item;
        branch_when_due(event.thread, thread);
      }
      break;
  }
}

// With what was left on the way by an exception or a jump.
template <typename Client>
void FlowMachine<Client>::leave(Thread& thread, FunctionId function) {
  const auto left = std::find(thread.calls.rbegin(), thread.calls.rend(), function);
  if (left != thread.calls.rend()) thread.calls.erase(left.base() - 1, thread.calls.end());
}

template <typename Client>
template <typename VisitTag, typename VisitControl>
void FlowMachine<Client>::for_each(VisitTag visit_tag, VisitControl visit_control) {
  for (Thread& thread : threads_) {
    thread.running = nullptr;
    thread.stack.resize(thread.depth);
    for (Activation& frame : thread.stack) {
      visit_control(frame.call_control);
      visit_control(frame.control);
      frame.registers.resize(frame.registers_used);
      for (Tag& tag : frame.registers) visit_tag(tag);
      for (BranchMark& mark : frame.marks) {
        if (mark.when < frame.began) mark = BranchMark();
        visit_control(mark.control);
      }
      for (Tag& tag : frame.call.arguments) visit_tag(tag);
      visit_tag(frame.call.result);
    }
  }
}

}  // namespace heddle

#include "flow/activations.h"
#include "flow/execute.h"
#include "flow/loops.h"
#include "flow/paths.h"
#include "flow/rounds.h"
