// Segment descriptors in the form in which FlowMachine executes them: flat, checked once.
//
// A descriptor (trace/catalog.h) is a small tree of vectors; walking it for every execution of a
// segment costs more than the flow itself. Here each segment is a fixed-size record and every list
// of registers is a slice of one array. Whatever a hostile file could get wrong is put right at
// this point: a register beyond the function's is dropped from source lists, and a definition of
// it goes to a spare register that nobody reads, so that execution needs no checks.
//
// Half of the phis of a program are counters of loops: nothing that was read from memory ever gets
// into them. Where a client says that a phi of values from nowhere is itself from nowhere, such
// registers are found once for each function and left out of everything.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"
#include "trace/execution.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

namespace heddle {

// A list of numbers: its length, then its elements. It does not move.
class FlowList {
 public:
  FlowList() = default;
  explicit FlowList(const std::uint32_t* numbers) : numbers_(numbers) {}

  const std::uint32_t* numbers() const { return numbers_; }
  std::uint32_t size() const { return numbers_[0]; }
  std::uint32_t operator[](std::uint32_t i) const { return numbers_[i + 1]; }

 private:
  static constexpr std::uint32_t kNone = 0;

  const std::uint32_t* numbers_ = &kNone;
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
  std::uint32_t first_edge{};  // into the block's phis; the last is for any other block
  std::uint32_t edge_count{};  // 0: no phis
};

// An access of a segment as a running program writes it (trace/execution.h). What an execution
// looks at comes first, in one line of the cache.
struct alignas(64) LiveItem {
  Address offset{};      // what is added to the word …
  std::uint32_t base{};  // … with this index
  Register defines{};
  FlowList address;
  FlowList value;
  EventKind kind{};
  bool stored_soon{};    // the segment itself stores what is read here, before it ends
  bool scattered{};      // its addresses are far from each other
  bool jumps{};          // what the client remembers of them leads far away from each other
  std::uint8_t shift{};  // this and the next four: the client's
  std::uint32_t key{};
  std::int32_t mask{};  // with its sign in front
  std::uint32_t context{};
  std::uint64_t moment{};
  Event event;                // as in ShapeItem
  std::uint32_t size_word{};  // as there
  Address sampled{};          // an address of it
  std::uint32_t led_to{};     // the client's
};

// What a client saw of an access: its own business, but for `moves`.
struct Sight {
  std::uint64_t where;
  void* what;
  void* also;
  const void* cell;
  std::uint32_t looks;    // before the round …
  std::uint32_t becomes;  // … and after it
  std::uint32_t last;
  bool writes;
  bool visited;
  bool moves;        // there is something to be done
  bool sets_access;  // the cell is about this access
  bool begins;
  bool begins_alone;
};

// Rounds of a loop whose addresses move on by the same steps all the time.
struct Stretch {
  std::span<LiveItem> items;
  const Sight* one;            // of the items, in the first, the third … round
  const Sight* other;          // … in those between them; may be the same
  const Address* where;        // of the items in the first round
  const std::uint64_t* steps;  // from round to round
  std::uint32_t events;        // that a round stands for
};

// A segment without accesses that a record implies.
struct LiveBefore {
  const FlowSegment* flow = nullptr;
  const FlowSegment* next = nullptr;  // which comes after it
  SegmentId id{};
  bool branches{};
  bool controls_next{};  // its branch is the latest that `next` depends on
  bool asks{};           // its branch depends on registers
};

// How often rounds of a loop are watched whether they are steady (flow/rounds.h): seldom where they
// have not been.
class SteadyRounds {
 public:
  bool is_worth_a_look() { return (++looked_ & pause_) == 0; }
  void lasted(std::ptrdiff_t rounds) {
    pause_ = static_cast<std::uint8_t>(rounds > kFew        ? 0
                                       : pause_ >= kLongest ? kLongest
                                                            : 2 * pause_ + 1);
  }

 private:
  static constexpr std::ptrdiff_t kFew = 3;
  static constexpr std::uint8_t kLongest = 63;

  std::uint8_t looked_ = 0;
  std::uint8_t pause_ = 0;  // rounds between two looks, less one of a power of two
};

struct Path;

// Of an Enter or a Leave it has paths only.
struct alignas(64) LiveSegment {
  const FlowSegment* flow = nullptr;  // nullptr: there is no such segment
  LiveItem* items = nullptr;
  const LiveBefore* before = nullptr;  // in the order in which they happened
  const Path* paths = nullptr;         // that begin with it, the first of a list
  FunctionId continues{};              // its function, or 0 if it enters it
  SegmentId id{};
  std::uint32_t item_count{};
  std::uint32_t before_count{};
  std::uint32_t own_edge{};  // the phis that it takes as the round of a loop, if any
  bool known{};
  bool fits = false;  // the shape's items are the segment's, and what is before it is as it should
  bool ends_now{};    // nothing that comes later belongs to it
  bool asks{};        // it ends with a branch that depends on registers
  bool scattered{};   // some of its items are
  bool jumps{};       // the same
  bool repeats{};     // it can be the round of a loop
  bool has_phis{};    // as such it takes phis
  SteadyRounds steady;
  std::uint8_t heat{};  // how often it came when no path began with it, since one was looked for

  // That an execution stands for.
  std::uint32_t events() const { return before_count + 1 + item_count; }
  std::span<LiveItem> all_items() const { return {items, item_count}; }
};
static_assert(sizeof(LiveSegment) == 64);

// Something to do on a path. Registers of all its activations have become slots: those of the
// activation that it begins in, and others behind them. Controls are numbered, 0 is the one before
// the path.
struct PathOp {
  enum class Kind : std::uint8_t {
    kRead,
    kWrite,
    kUpdate,
    kBranch,      // `id`: segment
    kAskControl,  // of what was executed before the path, for `segment`
    kEnter,       // `id`: function
    kLeave,       // the same
    kJoin,        // into the slot `id`
  };

  Kind kind{};
  std::uint8_t execution{};  // which of the path's has its words
  std::uint8_t control{};
  std::uint8_t decides{};  // the number of the control that comes of it
  std::uint32_t ordinal{};
  std::uint32_t id{};
  LiveItem* item = nullptr;
  const FlowSegment* segment = nullptr;
  FlowList from;
};

// A branch that may control what comes after the path.
struct PathMark {
  std::uint32_t block{};
  std::uint32_t step{};
  std::uint8_t control{};
};

// Executions that come one after another again and again (flow/paths.h).
struct Path {
  static constexpr std::uint32_t kAnyBlock = ~0u;
  static constexpr std::size_t kLongest = 16;  // executions
  static constexpr std::size_t kMostSteps = 48;
  static constexpr std::size_t kMostControls = 2 * kMostSteps + 1;  // fewer than 255
  static constexpr std::size_t kDeepest = 4;                        // activations
  static constexpr std::uint8_t kAsked = 255;

  const Path* next = nullptr;            // of those that begin with the same shape
  const FlowSegment* pending = nullptr;  // whose call it begins with; nullptr: with a segment
  std::uint32_t from{};                  // the block before it, where that matters
  std::uint32_t count{};                 // of executions
  std::uint32_t known{};  // of shapes; there may be one more, which must come after the path
  std::array<ShapeId, kLongest + 1> shapes{};
  std::uint32_t mark_count{};
  std::uint32_t step_count{};  // of the thread
  std::uint32_t events{};
  std::uint32_t slots{};
  std::vector<PathOp> ops;
  std::vector<PathMark> marks;
  std::uint8_t last{};                 // its last control, or kAsked: …
  const FlowSegment* asked = nullptr;  // … that of this segment
  const FlowSegment* end = nullptr;    // its last segment …
  SegmentId end_id{};
  std::uint32_t end_ordinal{};
  bool stays_open{};  // … to which something may belong that comes later
};

class FlowPrograms {
 public:
  static constexpr std::uint32_t kMaxRegisters = 1u << 20;
  static constexpr std::uint32_t kMaxBlocks = 1u << 20;
  static constexpr std::uint32_t kMostBefore = 16;  // segments that the round of a loop implies
  static constexpr std::size_t kMostPaths = 6;      // that begin with the same segment

  // `choices`: a phi may be something although all of its sources are nothing.
  FlowPrograms(const Catalog& catalog, bool choices) : catalog_(catalog), choices_(choices) {}

  // nullptr when there is no such segment. The catalog may have grown since the last call.
  const FlowSegment* find(SegmentId id) {
    if (id < compiled_.size() && compiled_[id] != nullptr) return compiled_[id];
    return compile(id);
  }

  // By ShapeId, with room for all of `shapes`; what is not known yet is to be compiled. Moves when
  // there are more shapes.
  LiveSegment* live(std::span<const RecordShape* const> shapes) {
    if (live_.size() < shapes.size()) live_.resize(shapes.size());
    return live_.data();
  }
  LiveSegment* live() { return live_.data(); }
  std::size_t number_of(const LiveSegment& live) const {
    return static_cast<std::size_t>(&live - live_.data());
  }
  // Returns its items, for the client's part of them.
  std::span<LiveItem> compile(ShapeId id, const RecordShape& shape);

  // Compiles a path of these executions, or of the first of them: it begins with a segment that
  // comes after `block`, or with the call of `pending`. No more than a few begin with the same
  // execution.
  void add_path(const FlowSegment* pending, std::uint32_t block, std::span<const ShapeId> ids,
                std::span<const RecordShape* const> shapes);

  const FlowItem& item(std::uint32_t number) const { return items_[number]; }
  FlowList argument(std::uint32_t number) const { return arguments_[number]; }

  // What the phis of a block do when it is entered from `block`.
  struct Edge {
    std::uint32_t block{};
    std::uint32_t first_phi{};
    std::uint32_t phi_count{};
    bool one_by_one{};  // the order of the phis is one in which they can be taken
  };
  struct Phi {
    Register defines{};
    bool known{};  // it has a value on this edge
    FlowList sources;
  };
  const Edge& edge(std::uint32_t number) const { return edges_[number]; }
  const Phi& phi(std::uint32_t number) const { return phis_[number]; }

  // Whether a call of `callee` begins the function that the linker knows as `name`: the same name,
  // or another variant of the same constructor or destructor, which the linker may know as one.
  bool calls(StringId callee, StringId name) {
    return callee == name || calls_variant(callee, name);
  }

 private:
  friend class PathCompiler;
  friend class PathReducer;

  // Registers of a function that something may get into; those beyond are not registers.
  using Carriers = std::vector<bool>;

  const FlowSegment* compile(SegmentId id);
  void compile_before(const RecordShape& shape, LiveSegment& out);
  void compile_round(LiveSegment& out) const;
  const Edge* edge_into(const FlowSegment& segment, std::uint32_t block) const;
  bool calls_variant(StringId callee, StringId name);
  void compile_phis(const Segment& from, const Carriers& carriers, FlowSegment& out);
  static bool are_independent(std::span<const Phi> phis);
  const Carriers& carriers_of(FunctionId id);
  Carriers find_carriers(FunctionId id) const;
  FlowList registers(const Sources& sources, const Carriers& carriers);
  FlowList list(const std::vector<std::uint32_t>& numbers);
  std::span<LiveItem> keep(std::vector<LiveItem> items) {
    return live_items_.emplace_back(std::move(items));
  }

  const Catalog& catalog_;
  bool choices_;
  std::size_t segments_seen_ = 1;  // of the catalog
  std::unordered_map<FunctionId, std::vector<SegmentId>> segments_of_;
  std::unordered_map<FunctionId, Carriers> carriers_;
  std::vector<LiveSegment> live_;  // by ShapeId
  std::deque<std::vector<LiveItem>> live_items_;
  std::deque<std::vector<LiveBefore>> live_before_;
  std::deque<Path> paths_;
  std::vector<const FlowSegment*> compiled_;  // by SegmentId
  std::deque<FlowSegment> segments_;
  std::vector<FlowItem> items_;
  std::vector<FlowList> arguments_;
  std::vector<Phi> phis_;
  std::vector<Edge> edges_;
  std::deque<std::vector<std::uint32_t>> lists_;
  std::unordered_map<std::uint64_t, bool> variants_;  // by callee and name
};

}  // namespace heddle
