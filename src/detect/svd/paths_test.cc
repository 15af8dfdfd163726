// Paths against the same executions one event at a time: threads that wander through functions with
// random blocks, phis, branches and calls, mostly on the ways that they have taken before.
#include "detect/svd/outcome.h"
#include "trace/text.h"

#include <array>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr int kSeeds = 6'000;
constexpr std::uint32_t kRegisters = 5;
constexpr std::uint32_t kFunctions = 3;  // each calls those that come after it
constexpr std::uint32_t kParameters = 2;
constexpr std::uint32_t kBlocks = 5;  // the last one returns
constexpr std::uint32_t kVariables = 7;
constexpr Address kBase = 0x10000;

class Wandering {
 public:
  explicit Wandering(unsigned seed) : random_(seed) {
    for (std::uint32_t function = 0; function < kFunctions; ++function) {
      text_ += fmt::format("function {} f{} linkage=f{} parameters={} registers={}\n", function + 1,
                           function, function, function == 0 ? 0 : kParameters, kRegisters);
      marked_.push_back(below(2) == 0);
      enters_.push_back(add_shape(RecordShape::Kind::kEnter, function + 1));
      leaves_.push_back(add_shape(RecordShape::Kind::kLeave, function + 1));
    }
    for (std::uint32_t function = 0; function < kFunctions; ++function) {
      for (std::uint32_t block = 0; block < kBlocks; ++block) make_block(function, block);
    }
    trace_ = trace_from_text(sites_ + text_ + "t0: segment 1\n");
    std::array<std::vector<Execution>, 2> threads;
    for (const ThreadId thread : {0u, 1u}) {
      while (threads[thread].size() < 500) walk(thread, 0, threads[thread]);
    }
    for (std::array<std::size_t, 2> done{};
         done[0] < threads[0].size() || done[1] < threads[1].size();) {
      const ThreadId thread = below(2);
      for (std::uint32_t more = 1 + below(60); more > 0 && done[thread] < threads[thread].size();
           --more) {
        executions_.push_back(threads[thread][done[thread]++]);
      }
    }
  }

  Outcome as_executions(const OnlineOptions& options) const {
    return Examined(trace_.catalog, options).executions(executions_, shapes_);
  }
  Outcome as_events() const {
    return Examined(trace_.catalog, OnlineOptions()).events(executions_, shapes_);
  }

 private:
  static constexpr std::uint32_t kLibrary = kFunctions;  // a callee without segments

  struct Block {
    std::vector<ShapeId> segments;     // all but the last end with a call …
    std::vector<std::uint32_t> calls;  // … of these
    std::array<std::uint32_t, 2> next{};
  };

  std::uint32_t below(std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_);
  }
  std::string some_registers() {
    std::string out = "(";
    for (std::uint32_t count = below(3); count > 0; --count)
      out += fmt::format("{}%{}", out.size() == 1 ? "" : " ", below(kRegisters));
    return out + ")";
  }
  ShapeId add_shape(RecordShape::Kind kind, std::uint32_t id) {
    auto shape = std::make_unique<RecordShape>();
    shape->kind = kind;
    shape->id = id;
    shapes_.push_back(owned_.emplace_back(std::move(shape)).get());
    return static_cast<ShapeId>(shapes_.size() - 1);
  }

  void make_block(std::uint32_t function, std::uint32_t block) {
    Block& out = blocks_[function][block];
    out.next = {below(kBlocks), below(kBlocks)};
    const std::uint32_t calls = below(3) == 0 ? 1 + below(2) : 0;
    for (std::uint32_t index = 0; index <= calls; ++index) {
      text_ +=
          fmt::format("segment {} in f{} block={} index={}", next_segment_, function, block, index);
      if (parents_of_[function][block].empty()) parents_of_[function][block] = some_parents();
      text_ += parents_of_[function][block] + "\n";
      if (index == 0 && block != 0 && below(2) == 0) add_phi();
      const ShapeId shape = add_shape(RecordShape::Kind::kSegment, next_segment_++);
      for (std::uint32_t items = below(3); items > 0; --items) add_item(*owned_.back());
      if (index < calls) {
        const std::uint32_t callee = function + 1 + below(kFunctions - function);
        text_ += fmt::format("  ends call arguments={}{} defines=%{} callee={}\n", some_registers(),
                             some_registers(), below(kRegisters),
                             callee == kLibrary ? "library" : fmt::format("f{}", callee));
        out.calls.push_back(callee);
      } else if (block == kBlocks - 1) {
        text_ += fmt::format("  ends return from={}\n", some_registers());
      } else {
        const bool branches = out.next[0] != out.next[1];
        text_ += branches ? fmt::format("  ends branch from={}\n", some_registers())
                          : std::string("  ends fall\n");
      }
      out.segments.push_back(shape);
    }
  }
  std::string some_parents() {
    std::string out;
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      if (below(3) == 0) out += fmt::format("{}{}", out.empty() ? " parents=" : ",", block);
    }
    return out.empty() ? " " : out;
  }
  void add_phi() {
    text_ += fmt::format("  phi %{}", below(kRegisters));
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      if (below(3) != 0) text_ += fmt::format(" {}{}", block, some_registers());
    }
    text_ += "\n";
  }
  void add_item(RecordShape& shape) {
    const bool writes = below(2) == 0;
    const SiteId site = next_site_++;
    sites_ += fmt::format("site {} @{} kind={}\n", site, site, writes ? "w" : "r");
    text_ += writes ? fmt::format("  access @#{} value={}\n", site, some_registers())
                    : fmt::format("  access @#{} %{}\n", site, below(kRegisters));
    ShapeItem item;
    item.event.kind = writes ? EventKind::kWrite : EventKind::kRead;
    item.event.site = site;
    item.event.size = 8;
    item.base = static_cast<std::uint32_t>(shape.items.size() + 1);
    shape.items.push_back(item);
  }

  void execute(ThreadId thread, ShapeId shape, std::vector<Execution>& out) {
    std::vector<Address>& words = words_.emplace_back(1, 0);
    for (std::size_t i = 0; i < shapes_[shape]->items.size(); ++i)
      words.push_back(kBase + Address{8} * below(kVariables));
    out.push_back(Execution::of(shape, thread, words.data()));
  }
  void walk(ThreadId thread, std::uint32_t function, std::vector<Execution>& out) {
    std::uint32_t block = 0;
    for (std::uint32_t left = 12;; --left) {
      const Block& now = blocks_[function][block];
      for (std::size_t i = 0; i < now.segments.size(); ++i) {
        execute(thread, now.segments[i], out);
        if (i == now.calls.size() || now.calls[i] == kLibrary) continue;
        const std::uint32_t callee = now.calls[i];
        if (marked_[callee]) execute(thread, enters_[callee], out);
        walk(thread, callee, out);
        if (marked_[callee]) execute(thread, leaves_[callee], out);
      }
      if (block == kBlocks - 1) return;
      block = left == 0 ? kBlocks - 1 : now.next[below(6) == 0 ? 1 : 0];
      if (block == 0) block = 1;  // which is the entry
    }
  }

  std::mt19937 random_;
  SiteId next_site_ = 1;
  SegmentId next_segment_ = 1;
  std::string sites_;
  std::string text_;
  Trace trace_;
  std::array<std::array<Block, kBlocks>, kFunctions> blocks_;
  std::array<std::array<std::string, kBlocks>, kFunctions> parents_of_;
  std::vector<bool> marked_;
  std::vector<ShapeId> enters_;
  std::vector<ShapeId> leaves_;
  std::vector<std::unique_ptr<RecordShape>> owned_;
  std::vector<const RecordShape*> shapes_{nullptr};
  std::deque<std::vector<Address>> words_;
  std::vector<Execution> executions_;
};

// What units are drawn by is not compared: an event that shows a violation takes the branch behind
// it along, which may merge the unit with another before it is drawn.
TEST(Paths, LeaveWhatSingleEventsLeave) {
  std::size_t violations = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Wandering wandering(static_cast<unsigned>(seed));
    OnlineOptions options;
    options.hot = static_cast<std::uint8_t>(1 + seed % 3);
    options.told = static_cast<std::uint32_t>(1 + seed % 5);
    const Outcome expected = wandering.as_events();
    const Outcome seen = wandering.as_executions(options);
    ASSERT_EQ(seen.violations, expected.violations) << "seed " << seed;
    ASSERT_EQ(seen.ended, expected.ended) << "seed " << seed;
    ASSERT_EQ(seen.created, expected.created) << "seed " << seed;
    violations += seen.violations.size();
  }
  EXPECT_GT(violations, std::size_t{kSeeds} / 2);
}

}  // namespace
}  // namespace heddle::svd
