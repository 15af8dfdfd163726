// Executions against events: for loops whose conditions change now and then, what a client is told
// is the same, whether the machine takes executions, round by round, or the events they stand for.
#include "flow/execute.h"

#include "base/test_seed.h"
#include "trace/execution.h"
#include "trace/text.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle {
namespace {

// Notes everything. Tags are sets of bits, controls are numbers of what decided.
class Notes {
 public:
  using Tag = std::uint32_t;
  struct Control {
    std::uint32_t number = 0;
    bool operator==(const Control&) const = default;
  };

  explicit Notes(std::uint32_t period) : period_(period) {}

  Tag join(ThreadId, Tag a, Tag b) { return a | b; }
  Tag load(const Event& event, EventOrdinal ordinal, TagList<Tag>, Control) {
    return read(event.site, event.address, ordinal);
  }
  void store(const Event& event, EventOrdinal ordinal, TagList<Tag> data, TagList<Tag> address,
             Control control) {
    write(event.site, event.address, ordinal, data, address, control);
  }
  Tag update(const Event&, EventOrdinal, TagList<Tag>, TagList<Tag>, Control) { return 0; }
  // What decided, by segment, with what each of them looked at last: so that rounds which decide
  // the same are controlled by the same.
  Control branch(ThreadId, EventOrdinal, SegmentId segment, Tag condition, Control outer) {
    Decided decided = decided_[outer.number];
    decided[segment] = condition;
    const auto next = static_cast<std::uint32_t>(decided_.size());
    const auto [at, is_new] = numbers_.try_emplace(decided, next);
    if (is_new) decided_.push_back(decided);
    return {at->second};
  }
  Tag choose(ThreadId, Tag value, Control) { return value; }
  bool choices() const { return false; }

  void turn(ThreadId) {}
  void entered(ThreadId, FunctionId, SiteId) {}
  void left(ThreadId, FunctionId) {}
  void expect(Address) {}
  void expect_beyond(Address) {}
  bool jumps(LiveItem&, Address, ThreadId) { return true; }
  void prepare(LiveItem&) {}
  bool load_at_a_glance(LiveItem& item, Address where, ThreadId, EventOrdinal ordinal, Tag& value) {
    value = read(item.event.site, where, ordinal);
    return true;
  }
  bool store_at_a_glance(LiveItem& item, Address where, ThreadId, EventOrdinal ordinal,
                         const Tag* registers, Control control) {
    write(item.event.site, where, ordinal, {registers, item.value.numbers()},
          {registers, item.address.numbers()}, control);
    return true;
  }

  // No round is steady: every access is noted.
  Tag updated(Tag tag) const { return tag; }
  bool begin_sight(const LiveItem&, Address, Sight&) { return false; }
  int knowledge() const { return 0; }
  bool is_as_good_as(int) const { return false; }
  bool end_sight(const LiveItem&, Address, ThreadId, const Tag*, Control, std::span<const Sight>,
                 Sight&) {
    return false;
  }
  std::uint64_t generation() const { return 0; }
  bool recall(const LiveItem&, Address, ThreadId, const Tag*, Control, Sight&, Sight&) {
    return false;
  }
  void rest() {}
  bool is_seen(const Sight&, const LiveItem&, Address) const { return false; }
  bool end_watch() const { return false; }
  bool is_seen_beyond(Sight&, const LiveItem&, Address) { return false; }
  void see_again(const Sight&, LiveItem&, Address, ThreadId, EventOrdinal) {}
  std::uint64_t go_through(const Stretch&, std::uint64_t, ThreadId, EventOrdinal) { return 0; }

  std::vector<std::string> lines;

 private:
  // What is read changes every so often.
  Tag read(SiteId site, Address address, EventOrdinal ordinal) {
    const Tag value = 1u << (++reads_ / period_ % 5);
    lines.push_back(fmt::format("{}: r #{} {:x} = {}", ordinal, site, address, value));
    return value;
  }
  void write(SiteId site, Address address, EventOrdinal ordinal, TagList<Tag> data,
             TagList<Tag> from, Control control) {
    lines.push_back(fmt::format("{}: w #{} {:x} data {} address {} control {}", ordinal, site,
                                address, all(data), all(from), control.number));
  }
  static Tag all(TagList<Tag> list) {
    Tag tag = 0;
    for (std::uint32_t i = 0; i < list.size(); ++i) tag |= list[i];
    return tag;
  }

  std::uint32_t period_;
  std::uint32_t reads_ = 0;
  using Decided = std::map<SegmentId, Tag>;
  std::vector<Decided> decided_{{}};
  std::map<Decided, std::uint32_t> numbers_{{{}, 0}};
};

// Three loops: of a head that decides on what the body read the round before; of a head that always
// goes on and a body that decides on what it has just read; of one block. Then what all of them
// control.
constexpr const char* kProgram =
    "site 1 @1 kind=r\nsite 2 @2 kind=w\nsite 3 @3 kind=w\n"
    "function 1 f registers=4\n"
    "segment 1 in f block=0 index=0\n"
    "  ends fall\n"
    "segment 2 in f block=1 index=0 parents=1\n"
    "  phi %0 0() 2(%1)\n"
    "  ends branch from=(%0)\n"
    "segment 3 in f block=2 index=0 parents=1\n"
    "  access @#1 %1\n"
    "  access @#2 address=(%1) value=(%0)\n"
    "  ends fall\n"
    "segment 4 in f block=3 index=0 parents=4\n"
    "  ends branch from=()\n"
    "segment 5 in f block=4 index=0 parents=3\n"
    "  access @#1 %1\n"
    "  access @#2 value=(%1)\n"
    "  ends branch from=(%1)\n"
    "segment 6 in f block=5 index=0 parents=5\n"
    "  phi %2 2(%0) 5(%3)\n"
    "  access @#1 %3\n"
    "  access @#2 value=(%2)\n"
    "  ends branch from=(%3)\n"
    "segment 7 in f block=6 index=0 parents=1,3,4,5\n"
    "  access @#3 value=(%2)\n"
    "  ends fall\n"
    "t0: segment 1\n";

class Loops {
 public:
  Loops() : trace_(trace_from_text(kProgram)) {
    shapes_ = {nullptr};
    for (const auto& [id, before, items] :
         {std::tuple<SegmentId, SegmentId, std::vector<SiteId>>{1, 0, {}},
          {3, 2, {1, 2}},
          {5, 4, {1, 2}},
          {6, 0, {1, 2}},
          {7, 0, {3}}}) {
      RecordShape shape;
      shape.kind = RecordShape::Kind::kSegment;
      shape.id = id;
      if (before != 0) shape.before = {before};
      for (const SiteId site : items) {
        ShapeItem item;
        item.event.kind = trace_.catalog.site(site).kind;
        item.event.site = site;
        item.event.size = 8;
        item.base = static_cast<std::uint32_t>(shape.items.size() + 1);
        shape.items.push_back(item);
      }
      owned_.push_back(std::make_unique<RecordShape>(std::move(shape)));
      shapes_.push_back(owned_.back().get());
    }
  }

  // Loops of random lengths, one after the other, in the function or anew.
  void make(std::mt19937& random) {
    const auto below = [&](std::uint32_t n) {
      return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random);
    };
    add(1);
    for (int i = 0; i < 6; ++i) {
      const ShapeId shape = below(4) + 2;
      const std::uint32_t rounds = shape == 5 ? 1 : below(30) + 1;
      for (std::uint32_t round = 0; round < rounds; ++round) add(shape);
    }
  }

  std::vector<std::string> as_events(std::uint32_t period) const {
    Notes notes(period);
    FlowMachine<Notes> machine(trace_.catalog, notes);
    EventOrdinal ordinal = 0;
    for (const Execution& execution : executions_) {
      const RecordShape& shape = *shapes_[execution.shape];
      for (const SegmentId before : shape.before) machine.on(segment_of(before, 0), ordinal++);
      machine.on(segment_of(shape.id, 0), ordinal++);
      for (const ShapeItem& item : shape.items) {
        Event event = item.event;
        event.address = address_of(item, execution.words);
        machine.on(event, ordinal++);
      }
    }
    return notes.lines;
  }
  std::vector<std::string> as_executions(std::uint32_t period) const {
    Notes notes(period);
    FlowMachine<Notes> machine(trace_.catalog, notes);
    const auto progress = machine.run(executions_, shapes_, 0, [] {});
    EXPECT_EQ(progress.executions, executions_.size());
    return notes.lines;
  }

 private:
  void add(ShapeId shape) {
    words_.push_back({0, 0x1000 + 8 * words_.size(), 0x2000 + 8 * words_.size()});
    executions_.push_back(Execution::of(shape, 0, words_.back().data()));
  }

  Trace trace_;
  std::vector<std::unique_ptr<RecordShape>> owned_;
  std::vector<const RecordShape*> shapes_;
  std::deque<std::array<std::uint64_t, 3>> words_;
  std::vector<Execution> executions_;
};

TEST(FlowExecutions, TellWhatTheirEventsTell) {
  const unsigned seed = test_seed();
  SCOPED_TRACE(fmt::format("HEDDLE_TEST_SEED={}", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2'000; ++i) {
    Loops loops;
    loops.make(random);
    const std::uint32_t period = i % 17 + 1;
    ASSERT_EQ(loops.as_executions(period), loops.as_events(period));
  }
}

}  // namespace
}  // namespace heddle
