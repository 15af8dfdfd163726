#include "detect/svd/online.h"

#include <algorithm>
#include <map>

namespace heddle::svd {
namespace {

// A bound that only tests set: they want numbers collected all the time.
constexpr std::size_t kSmallCollect = 1024;

// Of the memory after which numbers are collected, for sets: few live long, and what there is of
// them should fit into the processor's cache.
constexpr std::size_t kSetShare = 96;

// What there may be more of before numbers are collected again, as a share of what there is: of
// units, of all; of blocks, of themselves. Where memory is no concern, units can wait, and it is
// looked now and then for planes that nobody needs any more, which would lie between the others for
// ever.
constexpr std::size_t kShareOfAll = 40;
constexpr std::size_t kShareOfMuch = 8;
constexpr std::size_t kShareOfLittle = 2;

// When so many numbers of units are left, they are collected; more than begin in a batch.
constexpr std::size_t kLastNumbers = std::size_t{1} << 20;

// Units of cells that are next to each other are far from each other in memory.
constexpr std::size_t kCellsAhead = 16;

bool is_stored(BlockState state) {
  return state == BlockState::kStored || state == BlockState::kStoredShared ||
         state == BlockState::kTrueDep || state == BlockState::kTrueDepRead;
}

// No value gets the cell's unit through it: whoever reads the block begins another one.
bool is_weak(Cell cell) {
  return cell.block_state() == BlockState::kStoredShared ||
         (cell.block_state() == BlockState::kLoadedShared && cell.noted != 0);
}

}  // namespace

Online::Online(const Catalog& catalog, const OnlineOptions& options)
    : options_(options),
      calm_for_reads_(calm_cells(Calm::kReads)),
      calm_for_all_(calm_cells(Calm::kAll)),
      units_(options.set_limit, options.note_limit),
      blocks_(options.block_size),
      machine_(catalog, *this, options.hot),
      narrator_(catalog),
      contexts_(1),
      collect_blocks_at_(options.collect_bytes),
      collect_numbers_at_(kMaxUnit - kLastNumbers),
      collect_sets_at_(options.collect_bytes / kSetShare),
      collect_always_(options.collect_bytes < kSmallCollect),
      glances_(options.inputs_only && !options.propagate_address && !options.merge_control) {}

std::size_t Online::on(std::span<const Event> batch, EventOrdinal first) {
  const auto stop = [&] { return !violations_.empty() || collect_always_; };
  std::size_t taken = 0;
  while (taken < batch.size() && violations_.empty()) {
    const Event& event = batch[taken];
    if (is_access(event.kind) || event.kind == EventKind::kSegment) {
      taken += machine_.run(batch.subspan(taken), first + taken, stop);
    } else {
      bookkeeping(event);
      machine_.on(event, first + taken);
      ++taken;
    }
    if (collect_always_) collect_when_due();
  }
  collect_when_due();
  return taken;
}

EventOrdinal Online::on(const ExecutionBatch& batch, EventOrdinal next,
                        const std::function<void()>& violated) {
  violated_ = &violated;
  std::span<const Execution> executions = batch.executions;
  std::span<const Event> events = batch.events;
  machine_.sample(executions, batch.shapes);
  const auto run = [&] {
    return collect_always_
               ? machine_.run(executions, batch.shapes, next, [&] { collect_when_due(); })
               : machine_.run(executions, batch.shapes, next, [] {});
  };
  while (true) {
    const auto progress = run();
    executions = executions.subspan(progress.executions);
    next = progress.next;
    if (executions.empty()) break;
    const std::uint32_t count = executions[0].who;  // which is no execution
    executions = executions.subspan(1);
    for (const Event& event : events.subspan(0, count)) one(event, next++);
    events = events.subspan(count);
  }
  collect_when_due();
  violated_ = nullptr;
  return next;
}

void Online::one(const Event& event, EventOrdinal ordinal) {
  if (event.kind == EventKind::kEnter || event.kind == EventKind::kLeave) {
    narrator_.on(event);
    end_moment();
    machine_.call(event);
    return;
  }
  if (!is_access(event.kind) && event.kind != EventKind::kSegment) bookkeeping(event);
  machine_.on(event, ordinal);
  if (collect_always_) collect_when_due();
}

void Online::bookkeeping(const Event& event) {
  narrator_.on(event);
  end_moment();
  if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
    blocks_.forget(event.address, event.value);  // memory without a history
  } else if (event.kind == EventKind::kThreadEnd && event.thread < kMaxThread) {
    blocks_.drop(event.thread);
  }
}

// ---- the other threads ------------------------------------------------------------------------

void Online::tell_others(Blocks::Near& near, std::uint64_t number, const Event& event,
                         EventOrdinal ordinal) {
  const bool reads_only = !is_write(event.kind);
  const Address block = Blocks::address_of(near, number);
  Blocks::tell_others(near, number, [&](Cell& cell, const Blocks::Plane& plane) {
    if (cell.unit == 0 || calm_for_all_.has(cell)) return Calm::kAll;
    if (reads_only && calm_for_reads_.has(cell)) return Calm::kReads;
    const bool gone = blocks_.gone(plane.thread);
    const UnitId unit = gone ? 0 : units_.live(cell.unit);
    if (unit == 0 && (gone || !is_last_read(cell))) {
      cell = Cell();
      return Calm::kAll;
    }
    remote_access(cell, unit, plane, number, block, event, ordinal);
    if (cell.unit == 0 || calm_for_all_.has(cell)) return Calm::kAll;
    return calm_for_reads_.has(cell) ? Calm::kReads : Calm::kNone;
  });
  if (++near.page->told >= options_.told) [[unlikely]]
    blocks_.put_to_sleep(near, calm_for_all_);
}

// What remote_access() would do nothing about.
CellKinds Online::calm_cells(Calm calm) const {
  return CellKinds::where([&](BlockState state, bool input, bool noted) {
    if (state == BlockState::kLastRead) return noted || calm == Calm::kReads;
    if (state != BlockState::kLoadedShared && state != BlockState::kStoredShared) return false;
    if (noted) return true;
    if (!options_.inputs_only && is_stored(state)) return false;
    return calm == Calm::kReads || !input;
  });
}

void Online::remote_access(Cell& cell, UnitId unit, const Blocks::Plane& plane,
                           std::uint64_t number, Address block, const Event& event,
                           EventOrdinal ordinal) {
  if (unit == kNobody) return;
  const auto overwrite = [&] {
    Overwrite out{Blocks::access(plane, number), access_ref(event, event.thread, ordinal),
                  event.address, event.value};
    out.size = event.size;
    out.has_value = event.has_value;
    out.remote_thread = event.thread;
    return out;
  };
  switch (cell.block_state()) {
    case BlockState::kTrueDep:
      end_unit(unit);
      cell = Cell();
      return;
    case BlockState::kTrueDepRead:
      if (unit != 0) end_unit(unit, Units::Because::kReadBack);
      cell = make_cell(cell, units_.ended_read(cell.unit), BlockState::kLastRead, false, false);
      [[fallthrough]];
    case BlockState::kLastRead:
      if (cell.noted != 0 || !is_write(event.kind)) return;
      if (lost_.size() >= kMostLost) lost_.clear();
      lost_.insert_or_assign({plane.thread, block}, overwrite());
      cell.noted = 1;
      return;
    default:
      break;
  }
  const BlockState state = cell.block_state();
  if (cell.noted == 0) {
    const bool conflicts =
        (cell.input != 0 && is_write(event.kind)) || (!options_.inputs_only && is_stored(state));
    if (conflicts) {
      units_.note(unit, plane.thread, overwrite());
      cell.noted = 1;
    }
  }
  if (state == BlockState::kLoaded) cell.set(BlockState::kLoadedShared);
  if (state == BlockState::kStored) cell.set(BlockState::kStoredShared);
}

// The address of the access is not kept: the caller knows a part of it, from what it was found by.
Witness Online::remembered(AccessRef access, ThreadId thread, Address address,
                           std::uint32_t size) const {
  const Context& context = contexts_[access >> kOrdinalBits];
  Witness out;
  out.thread = thread;
  out.kind = context.kind;
  out.order = context.order;
  out.site = context.site;
  out.stack = context.stack;
  out.locks = context.locks;
  out.ordinal = ordinal_of(access);
  out.address = address;
  out.size = size;
  return out;
}

ContextId Online::find_context(const Event& event, ThreadId thread) {
  const Context context{event.site, narrator_.stacks().current(thread),
                        narrator_.locks_held().current(thread), event.kind, event.order};
  if (event.site >= last_context_.size()) last_context_.resize(event.site + 1);
  LastContext& last = last_context_[event.site];
  last.moment = moment_;
  if (contexts_[last.context] == context) return last.context;
  ContextId& recent = recent_contexts_[context.recent()];
  if (contexts_[recent] == context) return last.context = recent;
  const auto [at, is_new] =
      context_ids_.try_emplace(context, static_cast<ContextId>(contexts_.size()));
  if (is_new) {
    // What is not remembered any more is nowhere.
    if (contexts_.size() >> (64 - kOrdinalBits) != 0) {
      at->second = 0;
    } else {
      contexts_.push_back(context);
    }
  }
  return last.context = recent = at->second;
}

// The unit grows no further; its blocks are thread-local again until proven otherwise.
void Online::end_unit(UnitId unit, Units::Because because) {
  ++ended_by_sharing_;
  units_.end(unit, because);
}

// ---- loads and stores ---------------------------------------------------------------------------

// Of one cell, whose other threads may have to be told.
UnitSet Online::load_cell(Blocks::Near& near, std::uint64_t number, LiveItem& item, Address address,
                          ThreadId thread, EventOrdinal ordinal) {
  if (!near.is_calm_for_reads(number))
    tell_others(near, number, event_of(item, address, thread), ordinal);
  Cell& cell = near.cells[number];
  if (const UnitId unit = units_.live(cell.unit); unit != 0) {
    const bool remembers = kReadBack.has(cell) && is_remembered(near, item);
    if (remembers) blocks_.set_access(near, number, access_ref(item, thread, ordinal));
    if (kReadOn.has(cell)) return read_on(cell, unit, remembers);
    if (cell.block_state() == BlockState::kStoredShared && unit != kNobody) end_unit(unit);
  }
  const UnitId unit = units_.create();
  cell = make_cell(cell, unit, BlockState::kLoaded, true, false);
  blocks_.set_access(near, number, access_ref(item, thread, ordinal));
  return unit;
}

bool Online::store_at_a_glance(LiveItem& item, Address address, ThreadId thread,
                               EventOrdinal ordinal, const Tag* registers, Control control) {
  Blocks::Near& near = blocks_.near_here(address);
  const bool one = Blocks::is_one(near, address, item);
  if (!one && !Blocks::is_two(near, address, item)) [[unlikely]]
    return false;
  Cell* const cells = near.cells + Blocks::cell_of(near, address);
  if (kOverwritten.has(cells[0]) || (!one && kOverwritten.has(cells[1]))) [[unlikely]]
    return false;
  if (units_.any_noted()) {
    const ThreadId owner = std::min(thread, kMaxThread);
    if (!units_.is_calm(owner, control) || !are_calm(owner, {registers, item.address.numbers()}))
      return false;
  }
  UnitId owner = 0;
  const Register* data = item.value.numbers();
  for (std::uint32_t left = *data; left != 0; --left) {
    const UnitSet from = registers[*++data];
    if (from >= kSetBit) return false;
    const UnitId unit = units_.live(from & ~kComputed);
    if (unit == owner) continue;
    if (units_.noted(unit)) return false;
    owner = units_.merge(owner, unit);
  }
  if (owner == 0) owner = units_.create();
  const auto tell = [&](const Cell& cell) {
    if (!near.is_calm_for_writes(cell)) [[unlikely]] {
      tell_others(near, static_cast<std::uint64_t>(&cell - near.cells),
                  event_of(item, address, thread), ordinal);
    }
  };
  tell(cells[0]);
  if (one) [[likely]] {
    store_at(cells[0], owner);
  } else {
    tell(cells[1]);
    store_at(cells[0], owner);
    store_at(cells[1], owner);
  }
  if (last_stores_[item.event.site].unit != owner)
    remember_store(item, thread, address, ordinal, owner);
  return true;
}

// Of cells that are alike, and whose other threads have been told.
inline UnitSet Online::load_run(const Blocks::Run& run, const Event& event, EventOrdinal ordinal) {
  Cell* const cells = run.near->cells + run.first;
  Cell cell = cells[0];
  if (const UnitId unit = units_.live(cell.unit); unit != 0) {
    if (kReadOn.has(cell)) {
      const bool remembers = kReadBack.has(cell) && run.near->visited;
      const AccessRef access = remembers ? access_ref(event, event.thread, ordinal) : 0;
      const UnitSet read = read_on(cell, unit, remembers);
      for (std::uint64_t i = 0; i < run.count; ++i) {
        cells[i] = cell;
        if (remembers) blocks_.set_access(*run.near, run.first + i, access);
      }
      return read;
    }
    if (cell.block_state() == BlockState::kStoredShared && unit != kNobody) end_unit(unit);
  }
  const UnitId unit = units_.create();
  const AccessRef access = access_ref(event, event.thread, ordinal);
  for (std::uint64_t i = 0; i < run.count; ++i) {
    cells[i] = make_cell(cells[i], unit, BlockState::kLoaded, true, false);
    blocks_.set_access(*run.near, run.first + i, access);
  }
  return unit;
}

UnitSet Online::load_several(const Event& event, EventOrdinal ordinal) {
  const Blocks::Run run = blocks_.run(thread_of(event), event.address, event.size);
  if (run.count == 0) return load_many(event, ordinal);
  tell_others_if_due(run, event, ordinal);
  return alike(run) ? load_run(run, event, ordinal) : load_many(event, ordinal);
}

// Of cells that differ. First every shared dependence ends its unit, then what is still alive is
// merged.
UnitSet Online::load_many(const Event& event, EventOrdinal ordinal) {
  const ThreadId thread = thread_of(event);
  blocks_.for_each_run(thread, event.address, event.size, [&](const Blocks::Run& run) {
    tell_others_if_due(run, event, ordinal);
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const Cell cell = run.near->cells[run.first + i];
      if (cell.block_state() != BlockState::kStoredShared || cell.unit == kNobody) continue;
      if (const UnitId unit = units_.live(cell.unit); unit != 0) end_unit(unit);
    }
  });
  UnitId all = 0;
  UnitSet computed = 0;
  AccessRef access = 0;
  blocks_.for_each_run(thread, event.address, event.size, [&](const Blocks::Run& run) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      Cell& cell = run.near->cells[run.first + i];
      const UnitId unit = units_.live(cell.unit);
      const BlockState state = cell.block_state();
      const bool anew = state == BlockState::kStoredShared ||  // nobody's
                        state == BlockState::kLastRead ||
                        (cell.noted != 0 && state == BlockState::kLoadedShared);
      if (unit != 0 && !anew) {
        const bool remembers = kReadBack.has(cell) && run.near->visited;
        if (remembers) {
          if (access == 0) access = access_ref(event, event.thread, ordinal);
          blocks_.set_access(*run.near, run.first + i, access);
        }
        computed |= read_on(cell, unit, remembers) & kComputed;
        all = units_.merge(all, unit);
        continue;
      }
      if (all == 0) all = units_.create();
      cell = make_cell(cell, all, BlockState::kLoaded, true, false);
      if (access == 0) access = access_ref(event, event.thread, ordinal);
      blocks_.set_access(*run.near, run.first + i, access);
    }
  });
  return all | computed;
}

void Online::store_blocks(const Event& event, EventOrdinal ordinal, UnitId owner) {
  const auto store_run = [&](const Blocks::Run& run) {
    tell_others_if_due(run, event, ordinal);
    for (std::uint64_t i = run.first; i < run.first + run.count; ++i) {
      run.near->cells[i] = stored(run.near->cells[i], owner);
      if (!options_.inputs_only)
        blocks_.set_access(*run.near, i, access_ref(event, event.thread, ordinal));
    }
  };
  const ThreadId thread = thread_of(event);
  if (Blocks::Near* near = blocks_.near_of_one(thread, event.address, event.size);
      near != nullptr) {
    store_run({near, Blocks::cell_of(*near, event.address), 1});
  } else if (const Blocks::Run run = blocks_.run(thread, event.address, event.size);
             run.count != 0) {
    store_run(run);
  } else {
    blocks_.for_each_run(thread, event.address, event.size, store_run);
  }
  remember_store(event, event.thread, event.address, ordinal, owner);
}

Online::Tag Online::with_address(const Event& event, Tag tag, Tags address) {
  for (std::uint32_t i = 0; i < address.size(); ++i) tag = join(event.thread, tag, address[i]);
  return tag;
}

void Online::store(const Event& event, EventOrdinal ordinal, Tags data, Tags address,
                   Control control) {
  write(event, ordinal, data, 0, address, control);
  tell_violations();
}

Online::Tag Online::update(const Event& event, EventOrdinal ordinal, Tags data, Tags address,
                           Control control) {
  const Tag read = load(event, ordinal, address, control);
  write(event, ordinal, data, read, address, control);
  tell_violations();
  return read;
}

void Online::write(const Event& event, EventOrdinal ordinal, Tags data, UnitSet read, Tags address,
                   Control control) {
  const std::size_t first = violations_.size();
  if (!lost_.empty()) find_lost_updates(event, ordinal, data);
  // Merging first and then looking at the one unit is the same as looking at all of them.
  const std::uint64_t alarms = units_.merge_alarms();
  UnitId owner = units_.merge_all(0, read);
  for (std::uint32_t i = 0; i < data.size(); ++i) owner = units_.merge_all(owner, data[i]);
  if (options_.propagate_address) {
    for (std::uint32_t i = 0; i < address.size(); ++i) owner = units_.merge_all(owner, address[i]);
  }
  if (options_.merge_control) {
    units_.for_each_condition(control,
                              [&](UnitSet units) { owner = units_.merge_all(owner, units); });
  }
  if (owner == 0) {
    owner = units_.create();
  } else if (units_.noted(owner)) {
    report(owner, event, ordinal, Through::kData);
    units_.set_merge_alarms(alarms);
  }
  if (units_.any_noted()) {
    for (std::uint32_t i = 0; i < address.size(); ++i)
      check(address[i], event, ordinal, Through::kAddress);
    units_.for_each_alarmed_condition(thread_of(event), control, [&](UnitSet units) {
      check(units, event, ordinal, Through::kControl);
    });
  }
  store_blocks(event, ordinal, owner);
  for (Violation& violation : std::span(violations_).subspan(first)) {
    if (violation.unit == 0) violation.unit = owner;
  }
}

// A block was read back, another thread has overwritten it since, and what is stored there now
// comes from the unit that had read it.
void Online::find_lost_updates(const Event& store, EventOrdinal ordinal, Tags data) {
  const auto comes_from = [&](UnitId unit) {
    for (std::uint32_t i = 0; i < data.size(); ++i) {
      if (units_.has_computed(data[i], unit)) return true;
    }
    return false;
  };
  blocks_.for_each_run(thread_of(store), store.address, store.size, [&](const Blocks::Run& run) {
    for (std::uint64_t i = run.first; i < run.first + run.count; ++i) {
      const Cell cell = run.near->cells[i];
      if (!kOverwritten.has(cell)) continue;
      const UnitId unit = units_.ended_read(cell.unit);
      const Overwrite* const lost = lost_at(thread_of(store), Blocks::address_of(*run.near, i));
      if (unit == 0 || lost == nullptr || !comes_from(unit)) continue;
      const bool known =
          std::any_of(violations_.begin(), violations_.end(), [&](const Violation& other) {
            return other.store.ordinal == ordinal &&
                   other.remote.ordinal == ordinal_of(lost->remote) &&
                   other.inside.ordinal == ordinal_of(lost->inside);
          });
      if (!known) add_violation(*lost, 0, narrator_.witness(store, ordinal), Through::kData);
    }
  });
}

// Of a block whose page has been split since, the word that it is a part of is known.
const Overwrite* Online::lost_at(ThreadId thread, Address block) const {
  if (const auto at = lost_.find({thread, block}); at != lost_.end()) return &at->second;
  const auto word = lost_.find({thread, block & ~Address{7}});
  const bool covers = word != lost_.end() && block - word->second.address < word->second.size;
  return covers ? &word->second : nullptr;
}

Online::Tag Online::chosen(ThreadId thread, Tag value, Control edge) {
  units_.for_each_condition(edge, [&](UnitSet units) { value = join(thread, value, units); });
  return value;
}

// ---- the check ----------------------------------------------------------------------------------

void Online::check(UnitSet set, const Event& store, EventOrdinal ordinal, Through through) {
  if (set == 0) return;
  units_.for_each_alarmed(thread_of(store), set, [&](UnitId unit) {
    if (units_.noted(unit)) report(unit, store, ordinal, through);
  });
}

void Online::report(UnitId unit, const Event& store, EventOrdinal ordinal, Through through) {
  const Witness now = narrator_.witness(store, ordinal);
  units_.take_notes(
      unit, [&](const Overwrite& overwrite) { add_violation(overwrite, unit, now, through); });
}

void Online::add_violation(const Overwrite& overwrite, UnitId unit, const Witness& store,
                           Through through) {
  Violation& violation = violations_.emplace_back();
  violation.inside = remembered(overwrite.inside, store.thread, overwrite.address, overwrite.size);
  violation.remote =
      remembered(overwrite.remote, overwrite.remote_thread, overwrite.address, overwrite.size);
  violation.remote.has_value = overwrite.has_value != 0;
  violation.remote.value = overwrite.value;
  violation.store = store;
  violation.unit = unit;
  violation.through = through;
}

void Online::tell_violations() {
  if (violated_ != nullptr && !violations_.empty()) (*violated_)();
}

std::vector<UnitMember> Online::members(UnitId unit) {
  const UnitId wanted = units_.live(unit);
  if (wanted == 0) return {};
  std::map<SiteId, UnitMember> latest;
  const auto add = [&](const Witness& access, bool input) {
    UnitMember& member = latest[access.site];
    if (member.access.ordinal == kNoEvent || member.access.ordinal < access.ordinal)
      member = {access, input};
  };
  blocks_.for_each_cell(
      [&](Cell cell) { return is_about_input(cell) && units_.live(unit_of(cell)) == wanted; },
      [&](AccessRef access, ThreadId thread, Address address, std::uint32_t size) {
        add(remembered(access, thread, address, size), true);
      });
  for (const LastStore& last : last_stores_) {
    if (units_.live(last.unit) == wanted)
      add(remembered(last.access, last.thread, last.address, last.size), false);
  }
  std::vector<UnitMember> out;
  out.reserve(latest.size());
  for (const auto& [site, member] : latest) out.push_back(member);
  std::sort(out.begin(), out.end(), [](const UnitMember& a, const UnitMember& b) {
    return a.access.ordinal < b.access.ordinal;
  });
  return out;
}

// Most units die young, and sets sooner; what refers to them is renumbered away when they take too
// much memory, or too many numbers. Sets are referred to by registers only, units by every block in
// use.
void Online::collect_when_due() {
  const auto registers = [&](auto& renumbering) {
    machine_.for_each([&](Tag& tag) { renumbering.set(tag); },
                      [&](Control& control) { renumbering.control(control); });
  };
  const auto is_much = [&] {
    return units_.unit_bytes() + blocks_.bytes() >=
           options_.collect_bytes + options_.collect_times * blocks_.touched();
  };
  if (units_.taken() >= collect_numbers_at_ || blocks_.bytes() >= collect_blocks_at_ ||
      (is_much() && units_.unit_bytes() >= collect_units_at_)) {
    ++generation_;
    units_.renumber([&](auto& renumbering) {
      registers(renumbering);
      blocks_.for_each_plane([&](std::span<Cell> cells) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
          if (i + kCellsAhead < cells.size()) renumbering.expect(cells[i + kCellsAhead].unit);
          Cell& cell = cells[i];
          if (cell.unit == 0) continue;
          UnitId unit = cell.unit;
          if (remembers_read(cell)) {
            if (renumbering.is_held(unit)) {
              cell.unit = unit & kMaxUnit;
              continue;
            }
            cell = cell.block_state() == BlockState::kLastRead ? Cell() : forgetting_read(cell);
            if (cell.unit == 0) continue;
          }
          is_weak(cell) ? renumbering.weak(unit) : renumbering.unit(unit);
          cell.unit = unit & kMaxUnit;
          if (unit == 0) cell = Cell();
        }
      });
      for (LastStore& last : last_stores_) renumbering.weak(last.unit);
    });
    absl::erase_if(lost_, [&](const auto& lost) {
      return !kOverwritten.has(blocks_.cell_at(lost.first.first, lost.first.second));
    });
    lost_.rehash(0);
    // A note has its own copy of the access; of what has ended or is nobody's, none is asked for.
    blocks_.shrink([&](Cell cell) {
      return cell.unit > kNobody && cell.noted == 0 &&
             (is_about_input(cell) || remembers_read(cell) || !options_.inputs_only);
    });
    collect_units_at_ = units_.unit_bytes() + (units_.unit_bytes() + blocks_.bytes()) / kShareOfAll;
    collect_blocks_at_ =
        std::max(options_.collect_bytes,
                 blocks_.bytes() + blocks_.bytes() / (is_much() ? kShareOfMuch : kShareOfLittle));
    // Where hardly any are left, it is of no use to ask again.
    collect_numbers_at_ =
        units_.taken() < kMaxUnit - 2 * kLastNumbers ? kMaxUnit - kLastNumbers : ~std::size_t{0};
  } else if (units_.set_bytes() >= collect_sets_at_) {
    ++generation_;
    units_.renumber_sets(registers);
    collect_sets_at_ = std::max(options_.collect_bytes / kSetShare, 2 * units_.set_bytes());
  }
}

}  // namespace heddle::svd
