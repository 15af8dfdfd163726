// SVD, online: computational units and their violations in one pass (svd-2005, sections 4.2
// and 4.3).
//
// Units are inferred by propagating references (units.h) along the data flow that FlowMachine
// replays: a load gives its register the unit of the block, a store gives the block the union of
// the units that its data came from. Every thread has its own view of each block. The view's state
// tells, without knowing any lock, whether the block is shared, and when a unit has ended: when a
// shared block that the unit wrote is read back.
//
// The block's state machine (the paper's figure 8, rebuilt from the text of section 4.2: "shared"
// means accessed by another thread after the unit accessed it and before the unit ends; a shared
// dependence is a load in Stored_Shared or a remote access in True_Dep):
//
//   state          load                     store           remote access
//   Idle           Loaded                   Stored          Idle
//   Loaded         Loaded                   Stored          Loaded_Shared
//   Loaded_Shared  Loaded_Shared            Stored_Shared   Loaded_Shared
//   Stored         True_Dep                 Stored          Stored_Shared
//   Stored_Shared  the unit ends → Loaded   Stored_Shared   Stored_Shared
//   True_Dep       True_Dep                 True_Dep        the unit ends → Idle
//
// With True_Dep, updates get lost: a thread reads back what it wrote while nobody else is there;
// then others come, the unit ends, and nothing is left that knows of the value in the register. By
// the definition that last read of a shared block begins a unit. So we add two states, which are
// True_Dep and Idle but for a read that they remember:
//
//   True_Dep_Read  True_Dep_Read            True_Dep        the unit ends → Last_Read
//   Last_Read      Loaded                   Stored          Last_Read; overwritten by a write
//
// A load in Stored or True_Dep leads to True_Dep_Read if another thread has accessed the block's
// page before (elsewhere it would cost and gain nothing). A store to a block in Last_Read that has
// been overwritten, of a value that was computed in the unit that ended, is a *lost update*, and
// reported. Which of the unit's values came from that very read is not known; that the block itself
// is stored makes up for it: what is stored elsewhere (figure 3) stays what the paper says it is.
//
// When a unit ends, all of its blocks go back to Idle. A load that ends a unit is the first access
// of the next one. The state is the block's: a store that gives it to another unit does not reset
// it.
//
// The check, at every store: for the units that the store's data, address and control depend on,
// has another thread overwritten one of their inputs since they read it? An input is a block that
// the unit read before it wrote it. Each heuristic of section 4.3 is an option whose default is the
// paper's choice.
//
// What the paper leaves open, and what we do:
//   - An access of several blocks is one statement: a load merges the units of its blocks.
//   - A store by another unit of the same thread takes the block over, and with it the earlier
//     unit's claim on it as an input: after it, a remote write does not conflict with the earlier
//     read (section 3.1, conflict arcs, condition III).
//   - A read of an input that has been overwritten starts a new unit: no dependence leads from the
//     one read to the other. The old unit keeps its note, for whatever was computed from it. (The
//     paper, which knows units by their blocks only, must put both reads into one unit, and reports
//     every second look at a changing variable.)
//   - A branch is a statement, too: it merges the units that its condition came from. So a value
//     read again after it, together with what it was compared with, belongs to the same unit as the
//     comparison (figure 2: 3.05 and 3.09, through `len`). But only if one of the values was read
//     from a block that the thread itself had written: of two inputs neither is computed from
//     anything, so nothing that comes later depends on the comparison through them (figure 3: the
//     query's id, which every statement reads, would tie them all together).
//   - An overwritten input is reported at the first store that uses it, not again at every later
//     one; the first remote write is the witness.
//   - A read-modify-write is a load and a store between which nothing can come.
//
// Where we differ: control dependences are exact (from the post-dominator tree), loops included,
// where the paper guesses reconvergence points of if-then-else from branch targets. Of a loop's
// branch the latest execution counts, as on the paper's stack of branches each is once.
//
// Invariant: a thread's cell of a block is Idle iff the cell's unit has ended or it has none. Where
// it ended because of what was read back, cells in True_Dep_Read and Last_Read are Idle, too, but
// for the read that they remember.
#pragma once

#include "detect/svd/blocks.h"
#include "detect/svd/options.h"
#include "detect/svd/units.h"
#include "detect/witness.h"
#include "flow/machine.h"
#include "trace/catalog.h"
#include "trace/event.h"
#include "trace/execution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

using ContextId = std::uint32_t;  // statement, stack and locks of an access

// How a store depends on a unit.
enum class Through { kData, kAddress, kControl };

// A unit read (or accessed) `inside`, `remote` overwrote it, `store` used it nevertheless.
struct Violation {
  Witness inside;
  Witness remote;
  Witness store;
  UnitId unit{};  // until the next event
  Through through{};
};

// What a unit is known by: blocks that it read before it wrote them, and statements that wrote.
struct UnitMember {
  Witness access;  // the first read of an input, the first store of a statement
  bool input{};
};

class Online {
 public:
  Online(const Catalog& catalog, const OnlineOptions& options);

  // Takes events up to and including the first that shows a violation, and returns how many: a
  // violation can be described best while its event is the last one.
  std::size_t on(std::span<const Event> batch, EventOrdinal first);

  // Takes all of the batch, and calls `violated` whenever there are violations, right after the
  // statement that showed them. Returns the ordinal of what comes next.
  EventOrdinal on(const ExecutionBatch& batch, EventOrdinal first,
                  const std::function<void()>& violated);

  // Violations since the last call.
  std::vector<Violation> take_violations() { return std::exchange(violations_, {}); }
  // The same; what `taken` held before is forgotten, its memory is used again.
  void take_violations(std::vector<Violation>& taken) {
    taken.clear();
    taken.swap(violations_);
  }

  // The unit's statements, in the order in which they happened, each with its latest instance.
  // An input that has been overwritten is left out (it is in a violation), and so is a store that
  // has since been executed for another unit. Looks at all of the shadow
  // memory: for the few units that people look at.
  std::vector<UnitMember> members(UnitId unit);

  const Narrator& narrator() const { return narrator_; }
  std::size_t units_created() const { return units_.created(); }
  std::size_t units_ended_by_sharing() const { return ended_by_sharing_; }
  std::size_t bytes() const { return units_.unit_bytes() + units_.set_bytes() + blocks_.bytes(); }

  // ---- client of FlowMachine ----
  using Tag = UnitSet;
  using Control = svd::Control;
  using Tags = TagList<Tag>;
  Tag join(ThreadId /*thread*/, Tag a, Tag b) {
    return a == b || b == 0 ? a : a == 0 ? b : units_.join(a, b);
  }
  Tag load(const Event& event, EventOrdinal ordinal, Tags address, Control /*control*/) {
    const Tag tag = load_blocks(event, ordinal);
    return options_.propagate_address ? with_address(event, tag, address) : tag;
  }
  void store(const Event& event, EventOrdinal ordinal, Tags data, Tags address, Control control);
  Tag update(const Event& event, EventOrdinal ordinal, Tags data, Tags address, Control control);
  Control branch(ThreadId thread, EventOrdinal /*ordinal*/, SegmentId segment, Tag condition,
                 Control outer) {
    const ThreadId owner = std::min(thread, kMaxThread);
    return units_.control(owner, segment, units_.compared(condition), outer);
  }
  // What an edge's branch decided is connected to the branch only where control connects at all.
  Tag choose(ThreadId thread, Tag value, Control edge) {
    return edge == 0 || !options_.merge_control ? value : chosen(thread, value, edge);
  }
  bool choices() const { return options_.merge_control; }
  [[gnu::always_inline]] void expect(Address address) const { blocks_.expect(address); }
  // The words of the units of its cells.
  [[gnu::always_inline]] void expect_beyond(Address address) const {
    blocks_.for_cells_at(address, [&](Cell cell) { units_.expect(unit_of(cell)); });
  }
  bool jumps(LiveItem& item, Address address, ThreadId thread) {
    if (units_.unit_bytes() < kManyUnits) return false;
    blocks_.turn(std::min(thread, kMaxThread));
    const Blocks::Near& near = blocks_.near_here(address);
    if (!Blocks::is_one(near, address, item)) return item.jumps;
    const UnitId unit = unit_of(near.cells[Blocks::cell_of(address, item.shift)]);
    return unit - std::exchange(item.led_to, unit) + kFarUnits > 2 * kFarUnits;
  }
  void turn(ThreadId thread) {
    blocks_.turn(std::min(thread, kMaxThread));
    if (thread != moment_thread_) begin_moment(thread);
  }
  // The thread whose turn it is enters or leaves a function.
  void entered(ThreadId thread, FunctionId function, SiteId site) {
    narrator_.enter(thread, function, site);
    begin_moment(thread);
  }
  void left(ThreadId thread, FunctionId function) {
    narrator_.leave(thread, function);
    begin_moment(thread);
  }
  void rest() { collect_when_due(); }
  // Only with the usual options accesses are done at a glance.
  void prepare(LiveItem& item) {
    const bool glances = glances_ && item.size_word == 0;
    const Blocks::Place place = glances ? blocks_.place(item.event.size) : Blocks::Place();
    item.mask = place.mask;
    item.key = place.key;
    item.shift = place.shift;
    item.moment = kNoMoment;
    if (item.event.site >= last_stores_.size()) last_stores_.resize(item.event.site + 1);
  }
  // Accesses of one or two cells.
  [[gnu::always_inline]] bool load_at_a_glance(LiveItem& item, Address address, ThreadId thread,
                                               EventOrdinal ordinal, Tag& value) {
    Blocks::Near& near = blocks_.near_here(address);
    if (!Blocks::is_one(near, address, item)) [[unlikely]]
      return load_two(near, item, address, thread, ordinal, value);
    const std::uint64_t number = Blocks::cell_of(address, item.shift);
    const Cell cell = near.cells[number];
    if (near.is_calm_for_reads(cell) && kReadAtAGlance.has(cell)) [[likely]] {
      if (const UnitId unit = units_.live(unit_of(cell)); unit != 0) [[likely]] {
        value = tag_of(cell, unit);
        if (cell.block_state() == BlockState::kTrueDep && is_remembered(near, item)) {
          near.cells[number] = read_back(cell, unit);
          blocks_.set_access(near, number, access_ref(item, thread, ordinal));
        } else if (unit != unit_of(cell)) {
          near.cells[number].unit = unit & kMaxUnit;
        }
        return true;
      }
    }
    value = load_cell(near, number, item, address, thread, ordinal);
    return true;
  }
  // What was computed by one unit, or by units that are merged here, none with a note.
  bool store_at_a_glance(LiveItem& item, Address address, ThreadId thread, EventOrdinal ordinal,
                         const Tag* registers, Control control);
  // Steady rounds (steady.cc).
  Tag updated(Tag tag) { return tag >= kSetBit ? tag : units_.updated(tag); }
  bool begin_sight(const LiveItem& item, Address address, Sight& sight);
  Units::Knowledge knowledge() const { return units_.knowledge(); }
  bool is_as_good_as(const Units::Knowledge& before);
  bool end_watch() const { return unexplained_ == 0; }
  bool end_sight(const LiveItem& item, Address address, ThreadId thread, const Tag* registers,
                 Control control, std::span<const Sight> others, Sight& sight);
  std::uint64_t generation() const { return generation_; }
  bool recall(const LiveItem& item, Address address, ThreadId thread, const Tag* registers,
              Control control, Sight& one, Sight& other);
  // Whether the access is about a cell like the one that was seen, in the same page.
  [[gnu::always_inline]] static bool is_seen(const Sight& sight, const LiveItem& item,
                                             Address address) {
    const auto* const cells = static_cast<const Cell*>(sight.what);
    return (address & item.mask) == sight.where &&
           std::bit_cast<std::uint32_t>(cells[Blocks::cell_of(address, item.shift)]) == sight.looks;
  }
  // The same in another page, or of a cell that is like it only at second sight.
  bool is_seen_beyond(Sight& sight, const LiveItem& item, Address address);
  [[gnu::always_inline]] void see_again(const Sight& sight, LiveItem& item, Address address,
                                        ThreadId thread, EventOrdinal ordinal) {
    const std::uint64_t number = Blocks::cell_of(address, item.shift);
    Cell& cell = static_cast<Cell*>(sight.what)[number];
    cell = std::bit_cast<Cell>(sight.becomes);
    if (sight.begins_alone) cell.unit = units_.create() & kMaxUnit;
    if (item.kind == EventKind::kWrite && last_stores_[item.event.site].unit != unit_of(cell))
      remember_store(item, thread, address, ordinal, unit_of(cell));
    if (sight.also == nullptr) return;
    auto& accesses = *static_cast<Accesses*>(sight.also);
    blocks_.set_access(accesses, number, access_ref(item, thread, ordinal));
    if (sight.begins) units_.count_one_more();
  }

  std::uint64_t go_through(const Stretch& stretch, std::uint64_t rounds, ThreadId thread,
                           EventOrdinal ordinal);

 private:
  static constexpr std::size_t kManyUnits = std::size_t{1} << 18;  // bytes
  static constexpr UnitId kFarUnits = 1024;
  static constexpr std::size_t kFewUnits = std::size_t{1} << 16;  // more than begin in a batch
  static constexpr std::uint64_t kNoMoment = ~0ull;
  static constexpr ThreadId kNoThread = ~0u;
  static constexpr std::size_t kMostLost = std::size_t{1} << 16;

  struct Context {
    SiteId site{};
    StackId stack{};
    LockSetId locks{};
    EventKind kind{};
    MemoryOrder order{};

    bool operator==(const Context&) const = default;
    std::size_t recent() const {
      return (site * 0x9e3779b1u ^ stack * 0x85ebca6bu ^ locks * 0xc2b2ae35u) >> 20;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Context& c) {
      return H::combine(std::move(h), c.site, c.stack, c.locks, c.kind, c.order);
    }
  };

  // The context that came last, good for as long as stack and locks are those of this moment.
  struct LastContext {
    std::uint64_t moment = kNoMoment;
    ContextId context = 0;
  };

  // A statement's first store for the last of its units, for the drawing of that unit.
  struct LastStore {
    UnitId unit{};
    ThreadId thread{};
    AccessRef access{};
    Address address{};
    std::uint32_t size{};
  };

  Tag chosen(ThreadId thread, Tag value, Control edge);
  void one(const Event& event, EventOrdinal ordinal);
  void bookkeeping(const Event& event);
  CellKinds calm_cells(Calm calm) const;
  void tell_others(Blocks::Near& near, std::uint64_t cell, const Event& event,
                   EventOrdinal ordinal);
  void tell_others_if_due(const Blocks::Run& run, const Event& event, EventOrdinal ordinal) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      if (!run.near->is_calm(run.first + i, is_write(event.kind)))
        tell_others(*run.near, run.first + i, event, ordinal);
    }
  }
  void remote_access(Cell& cell, UnitId unit, const Blocks::Plane& plane, std::uint64_t number,
                     Address block, const Event& event, EventOrdinal ordinal);
  AccessRef access_ref(const Event& event, ThreadId thread, EventOrdinal ordinal) {
    return make_ref(context_of(event, thread), ordinal);
  }
  // The same of an access at a glance, by the thread whose turn it is.
  AccessRef access_ref(LiveItem& item, ThreadId thread, EventOrdinal ordinal) {
    if (item.moment != moment_) {
      item.context = context_of(item.event, thread);
      item.moment = moment_;
    }
    return make_ref(item.context, ordinal);
  }
  static EventOrdinal ordinal_of(AccessRef access) { return access & ((1ull << kOrdinalBits) - 1); }
  static AccessRef make_ref(ContextId context, EventOrdinal ordinal) {
    return std::uint64_t{context} << kOrdinalBits | (ordinal & ((1ull << kOrdinalBits) - 1));
  }
  void begin_moment(ThreadId thread) {
    moment_thread_ = thread;
    moment_ = std::uint64_t{narrator_.stacks().current(thread)} << 32 |
              narrator_.locks_held().current(thread);
  }
  // Somebody's stack or locks may have changed.
  void end_moment() { moment_thread_ = kNoThread; }
  // Of `event`, but of this thread.
  ContextId context_of(const Event& event, ThreadId thread) {
    if (thread != moment_thread_) begin_moment(thread);
    if (event.site >= last_context_.size()) return find_context(event, thread);
    const LastContext last = last_context_[event.site];
    const Context& context = contexts_[last.context];
    const bool same =
        last.moment == moment_ && context.kind == event.kind && context.order == event.order;
    return same ? last.context : find_context(event, thread);
  }
  Witness remembered(AccessRef access, ThreadId thread, Address address, std::uint32_t size) const;
  ContextId find_context(const Event& event, ThreadId thread);

  static ThreadId thread_of(const Event& event) { return std::min(event.thread, kMaxThread); }
  // A run of cells that are alike can be treated as one.
  static bool alike(const Blocks::Run& run) {
    const Cell* cells = run.near->cells + run.first;
    for (std::uint64_t i = 1; i < run.count; ++i) {
      if (cells[i] != cells[0]) return false;
    }
    return true;
  }
  // Most loads are of a block that the unit has read before.
  static constexpr CellKinds kReadAgain =
      CellKinds::where([](BlockState state, bool /*input*/, bool noted) {
        return state == BlockState::kLoaded || state == BlockState::kTrueDepRead ||
               (state == BlockState::kLoadedShared && !noted);
      });
  // … or has stored again and again.
  static constexpr CellKinds kReadAtAGlance =
      CellKinds::where([](BlockState state, bool /*input*/, bool noted) {
        return state == BlockState::kLoaded || state == BlockState::kTrueDep ||
               state == BlockState::kTrueDepRead || (state == BlockState::kLoadedShared && !noted);
      });
  // Whether the last read of what the unit has stored is.
  static bool is_remembered(const Blocks::Near& near, const LiveItem& item) {
    return near.visited && !item.stored_soon;
  }
  // What a cell in True_Dep becomes.
  static Cell read_back(Cell cell, UnitId unit) {
    static_assert(static_cast<unsigned>(BlockState::kTrueDepRead) ==
                  static_cast<unsigned>(BlockState::kTrueDep) + 1);
    return cell.with(cell.kind() + (1u << 2), unit);
  }
  UnitSet load_blocks(const Event& event, EventOrdinal ordinal) {
    Blocks::Near* const near = blocks_.near_of_one(thread_of(event), event.address, event.size);
    if (near == nullptr) return load_several(event, ordinal);
    const std::uint64_t number = Blocks::cell_of(*near, event.address);
    const Cell cell = near->cells[number];
    if (near->is_calm(number, is_write(event.kind)) && kReadAgain.has(cell) &&
        units_.is_live_root(cell.unit)) {
      return tag_of(cell);
    }
    const Blocks::Run run{near, number, 1};
    tell_others_if_due(run, event, ordinal);
    return load_run(run, event, ordinal);
  }
  // Of a cell that was read before: of those states only those of True_Dep have the highest bit.
  static UnitSet tag_of(Cell cell) { return tag_of(cell, unit_of(cell)); }
  // The same if the unit has been merged into this one.
  static UnitSet tag_of(Cell cell, UnitId unit) {
    static_assert(static_cast<unsigned>(BlockState::kTrueDepRead) >> 2 == 1 &&
                  static_cast<unsigned>(BlockState::kTrueDep) >> 2 == 1 &&
                  static_cast<unsigned>(BlockState::kLoaded) >> 2 == 0 &&
                  static_cast<unsigned>(BlockState::kLoadedShared) >> 2 == 0);
    const auto bits = std::bit_cast<std::uint32_t>(cell);
    return unit | (bits << 26 & kComputed);
  }
  // The same as cell.unit, which compilers find hard.
  static UnitId unit_of(Cell cell) { return std::bit_cast<std::uint32_t>(cell) >> 7; }
  static Event event_of(const LiveItem& item, Address address, ThreadId thread) {
    Event event = item.event;
    event.thread = thread;
    event.address = address;
    return event;
  }
  // A load joins the live unit of the cell.
  static UnitSet read_on(Cell& cell, UnitId unit, bool remembers) {
    const bool computed = kStored.has(cell);
    if (kReadBack.has(cell)) cell.set(remembers ? BlockState::kTrueDepRead : BlockState::kTrueDep);
    cell.unit = unit & kMaxUnit;
    return computed ? unit | kComputed : unit;
  }
  UnitSet load_cell(Blocks::Near& near, std::uint64_t number, LiveItem& item, Address address,
                    ThreadId thread, EventOrdinal ordinal);
  // Two cells that are alike and that their unit has read before.
  [[gnu::always_inline]] bool load_two(Blocks::Near& near, LiveItem& item, Address address,
                                       ThreadId thread, EventOrdinal ordinal, Tag& value) {
    if (!Blocks::is_two(near, address, item)) return false;
    const std::uint64_t number = Blocks::cell_of(near, address);
    Cell* const cells = near.cells + number;
    const Cell cell = cells[0];
    if (cells[1] != cell || !kReadAtAGlance.has(cell) || !near.is_calm_for_reads(cell) ||
        !units_.is_live_root(cell.unit)) {
      return false;
    }
    value = tag_of(cell);
    if (cell.block_state() == BlockState::kTrueDep && is_remembered(near, item)) {
      cells[0] = cells[1] = read_back(cell, unit_of(cell));
      const AccessRef access = access_ref(item, thread, ordinal);
      blocks_.set_access(near, number, access);
      blocks_.set_access(near, number + 1, access);
    }
    return true;
  }
  UnitSet load_several(const Event& event, EventOrdinal ordinal);
  Tag with_address(const Event& event, Tag tag, Tags address);
  UnitSet load_many(const Event& event, EventOrdinal ordinal);
  UnitSet load_run(const Blocks::Run& run, const Event& event, EventOrdinal ordinal);
  // The cell of a block that `owner` stores.
  Cell stored(Cell cell, UnitId owner) {
    const UnitId before = units_.live(unit_of(cell));
    unsigned kind = kKindsStored[before == 0 ? 0 : cell.kind()];
    if (before != owner) {
      kind &= ~3u;  // neither an input nor noted
    } else if (!options_.inputs_only) {
      kind &= ~1u;  // it is about this store, not about the unit's first read
    }
    return cell.with(kind, owner);
  }
  void store_at(Cell& cell, UnitId owner) {
    if (unit_of(cell) != owner) {
      cell = stored(cell, owner);
    } else if (!kStoredAgain.has(cell)) {
      cell = cell.with(kKindsStored[cell.kind()], owner);
    }
  }
  // What a store by the cell's own unit makes of its kind.
  static constexpr std::array<std::uint8_t, 32> kKindsStored = [] {
    std::array<std::uint8_t, 32> out{};
    for (unsigned kind = 0; kind < 32; ++kind) {
      auto state = static_cast<BlockState>(kind >> 2);
      if (state == BlockState::kIdle || state == BlockState::kLoaded) state = BlockState::kStored;
      if (state == BlockState::kLastRead) state = BlockState::kStored;
      if (state == BlockState::kLoadedShared) state = BlockState::kStoredShared;
      if (state == BlockState::kTrueDepRead) state = BlockState::kTrueDep;
      const unsigned input = (kind & 2) != 0 ? kind & 3 : 0;  // only inputs stay noted
      out[kind] = static_cast<std::uint8_t>(static_cast<unsigned>(state) << 2 | input);
    }
    return out;
  }();
  // Cells that stored() leaves as they are, if the unit is theirs and inputs are checked.
  static constexpr CellKinds kStoredAgain =
      CellKinds::where([](BlockState state, bool input, bool noted) {
        return (state == BlockState::kStored || state == BlockState::kStoredShared ||
                state == BlockState::kTrueDep) &&
               (input || !noted);
      });
  static constexpr CellKinds kStored =
      CellKinds::where([](BlockState state, bool /*input*/, bool /*noted*/) {
        return state == BlockState::kStored || state == BlockState::kStoredShared ||
               state == BlockState::kTrueDep || state == BlockState::kTrueDepRead;
      });
  // Cells that another thread has overwritten since they were read back.
  static constexpr CellKinds kOverwritten =
      CellKinds::where([](BlockState state, bool /*input*/, bool noted) {
        return state == BlockState::kLastRead && noted;
      });
  // Cells of which a load reads back what the unit has stored.
  static constexpr CellKinds kReadBack =
      CellKinds::where([](BlockState state, bool /*input*/, bool /*noted*/) {
        return state == BlockState::kStored || state == BlockState::kTrueDep;
      });
  // Cells whose unit a load joins.
  static constexpr CellKinds kReadOn =
      CellKinds::where([](BlockState state, bool /*input*/, bool noted) {
        return state != BlockState::kStoredShared && state != BlockState::kLastRead &&
               !(state == BlockState::kLoadedShared && noted);
      });
  // Cells whose access is the last read of what the unit had stored there.
  static bool remembers_read(Cell cell) {
    return cell.block_state() == BlockState::kTrueDepRead ||
           cell.block_state() == BlockState::kLastRead;
  }
  static Cell forgetting_read(Cell cell) {
    cell.set(BlockState::kTrueDep);
    return cell;
  }
  // Of those, such as matter although the unit has ended.
  bool is_last_read(Cell cell) {
    return remembers_read(cell) && units_.ended_read(unit_of(cell)) != 0;
  }
  // Whether the cell's access is the first read of an input. Once the unit has read back what it
  // stored there, it is the last such read.
  static bool is_about_input(Cell cell) {
    const BlockState state = cell.block_state();
    return cell.input != 0 && cell.noted == 0 && state != BlockState::kTrueDepRead &&
           state != BlockState::kTrueDep;
  }
  static bool is_calm(const Blocks::Near& near, const LiveItem& item, Cell cell);
  Cell& up_to_date(Cell& cell);
  bool is_from_nowhere(Tags data);
  bool stores_calmly(const LiveItem& item, UnitId unit, ThreadId thread, const Tag* registers,
                     Control control);
  std::uint64_t count_alike(Cell* cells, std::uint64_t count, std::uint64_t looks);
  void begin_alone(const Stretch& stretch, std::uint64_t rounds);
  void set_accesses(const Stretch& stretch, std::size_t i, std::uint64_t rounds, ThreadId thread,
                    EventOrdinal ordinal);
  bool are_calm(ThreadId thread, Tags tags) {
    for (std::uint32_t i = 0; i < tags.size(); ++i) {
      if (!units_.is_calm_set(thread, tags[i])) return false;
    }
    return true;
  }
  // Of `event`, but of this thread and at this address.
  void remember_store(const Event& event, ThreadId thread, Address address, EventOrdinal ordinal,
                      UnitId owner) {
    if (event.site >= last_stores_.size()) [[unlikely]]
      last_stores_.resize(event.site + 1);
    LastStore& last = last_stores_[event.site];
    if (last.unit == owner) return;
    last = {owner, std::min(thread, kMaxThread), access_ref(event, thread, ordinal), address,
            event.size};
  }
  // The same of an access at a glance.
  void remember_store(LiveItem& item, ThreadId thread, Address address, EventOrdinal ordinal,
                      UnitId owner) {
    last_stores_[item.event.site] = {owner, std::min(thread, kMaxThread),
                                     access_ref(item, thread, ordinal), address, item.event.size};
  }
  void store_blocks(const Event& event, EventOrdinal ordinal, UnitId owner);
  void write(const Event& event, EventOrdinal ordinal, Tags data, UnitSet read, Tags address,
             Control control);
  void check(UnitSet set, const Event& store, EventOrdinal ordinal, Through through);
  void find_lost_updates(const Event& store, EventOrdinal ordinal, Tags data);
  const Overwrite* lost_at(ThreadId thread, Address block) const;
  void add_violation(const Overwrite& overwrite, UnitId unit, const Witness& store,
                     Through through);
  void report(UnitId unit, const Event& store, EventOrdinal ordinal, Through through);
  void tell_violations();
  void end_unit(UnitId unit, Units::Because because = Units::Because::kOther);
  void collect_when_due();

  OnlineOptions options_;
  CellKinds calm_for_reads_;  // cells to which a remote read does nothing; states only
  CellKinds calm_for_all_;    // … and a remote write neither
  Units units_;
  Blocks blocks_;
  FlowMachine<Online> machine_;
  Narrator narrator_;
  std::vector<Context> contexts_;
  absl::flat_hash_map<Context, ContextId> context_ids_;
  std::array<ContextId, 4096> recent_contexts_{};  // by Context::recent()
  std::vector<LastContext> last_context_;          // by site
  std::uint64_t moment_ = kNoMoment;               // stack and locks …
  ThreadId moment_thread_ = kNoThread;             // … of this thread
  std::vector<LastStore> last_stores_;             // by site
  // What another thread has overwritten since the thread read it back: by thread and block.
  absl::flat_hash_map<std::pair<ThreadId, Address>, Overwrite> lost_;
  std::vector<Violation> violations_;
  const std::function<void()>* violated_ = nullptr;  // while a batch of executions is taken
  std::size_t ended_by_sharing_ = 0;
  std::uint64_t generation_ = 0;  // of the numbers of units, sets and controls
  UnitId watched_from_ = 0;       // units from here on began in the round that was watched …
  std::size_t unexplained_ = 0;   // … and so many that were not merged have not been looked at
  // Where there are more than that, numbers are collected (collect_when_due).
  std::size_t collect_units_at_ = 0;  // bytes
  std::size_t collect_blocks_at_;     // the same
  std::size_t collect_numbers_at_;
  std::size_t collect_sets_at_;
  bool collect_always_;
  bool glances_;  // the options are the usual ones, for which the quick ways are made
};

}  // namespace heddle::svd
