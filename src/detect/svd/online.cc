#include "detect/svd/online.h"

#include <algorithm>
#include <map>

namespace heddle::svd {
namespace {

// A bound that only tests set: they want numbers collected all the time.
constexpr std::size_t kSmallCollect = 1024;

bool stored(BlockState state) {
  return state == BlockState::kStored || state == BlockState::kStoredShared ||
         state == BlockState::kTrueDep;
}

}  // namespace

Online::Online(const Catalog& catalog, const OnlineOptions& options)
    : options_(options),
      units_(options.set_limit, options.note_limit),
      blocks_(options.block_size),
      machine_(catalog, *this),
      narrator_(catalog),
      contexts_(1),
      collect_units_at_(options.collect_bytes),
      collect_sets_at_(options.collect_bytes / 8) {}

std::size_t Online::on(std::span<const Event> batch, EventOrdinal first) {
  for (std::size_t i = 0; i < batch.size();) {
    const Event& event = batch[i];
    if (!is_access(event.kind) && event.kind != EventKind::kSegment) bookkeeping(event);
    i += machine_.on_some(batch.subspan(i), first + i, [&] { return !violations_.empty(); });
    if (!violations_.empty()) return i;
    if (++since_check_ >= 64 || options_.collect_bytes < kSmallCollect) collect_when_due();
  }
  return batch.size();
}

void Online::bookkeeping(const Event& event) {
  narrator_.on(event);
  if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
    blocks_.forget(event.address, event.value);  // memory without a history
  } else if (event.kind == EventKind::kThreadEnd && event.thread < kMaxThread) {
    if (event.thread >= gone_.size()) gone_.resize(event.thread + 1, false);
    gone_[event.thread] = true;
  }
}

// ---- the other threads ------------------------------------------------------------------------

View& Online::own_view_slowly(View& cell, const Event& event, EventOrdinal ordinal) {
  // Beyond a hundred thousand threads, the last ones share a view.
  return blocks_.own(
      cell, std::min(event.thread, kMaxThread), [&](const View& view) { return alive(view); },
      [&](View& view) { remote_access(view, event, ordinal); },
      [&](const View& view) { return calm(view); });
}

// What remote_access() would do nothing about.
Calm Online::calm(const View& view) const {
  const BlockState state = view.block_state();
  if (state != BlockState::kLoadedShared && state != BlockState::kStoredShared) return Calm::kNone;
  if (view.noted != 0) return Calm::kAll;
  if (!options_.inputs_only && stored(state)) return Calm::kNone;
  return view.input != 0 ? Calm::kReads : Calm::kAll;
}

void Online::remote_access(View& view, const Event& event, EventOrdinal ordinal) {
  const BlockState state = view.block_state();
  const UnitId unit = units_.live(view.unit);
  if (view.noted == 0) {
    const bool conflicts =
        (view.input != 0 && is_write(event.kind)) || (!options_.inputs_only && stored(state));
    if (conflicts) {
      units_.note(unit,
                  {remembered(view, event.address, event.size), narrator_.witness(event, ordinal)});
      view.noted = 1;
    }
  }
  if (state == BlockState::kLoaded) {
    view.set(BlockState::kLoadedShared);
  } else if (state == BlockState::kStored) {
    view.set(BlockState::kStoredShared);
  } else if (state == BlockState::kTrueDep) {
    end_unit(unit);
  }
}

// The address of the access is not kept: the caller knows a part of it, from what it was found by.
Witness Online::remembered(const View& view, Address address, std::uint32_t size) const {
  const Context& context = contexts_[view.context];
  Witness out;
  out.thread = static_cast<ThreadId>(view.thread);
  out.kind = context.kind;
  out.site = context.site;
  out.stack = context.stack;
  out.locks = context.locks;
  out.ordinal = view.ordinal;
  out.address = address;
  out.size = size;
  return out;
}

ContextId Online::context_of(const Event& event) {
  const Context context{event.site, narrator_.stacks().current(event.thread),
                        narrator_.locks_held().current(event.thread), event.kind};
  if (event.site < last_context_.size()) {
    const ContextId last = last_context_[event.site];
    if (contexts_[last] == context) return last;
  } else {
    last_context_.resize(event.site + 1, 0);
  }
  const auto [at, is_new] =
      context_ids_.try_emplace(context, static_cast<ContextId>(contexts_.size()));
  if (is_new) contexts_.push_back(context);
  return last_context_[event.site] = at->second;
}

// The unit grows no further; its blocks are thread-local again until proven otherwise.
void Online::end_unit(UnitId unit) {
  ++ended_by_sharing_;
  units_.end(unit);
}

// ---- loads and stores ---------------------------------------------------------------------------

// What this thread's read of one block adds to the unit `all` of the statement.
UnitSet Online::load_view(View& view, UnitSet all, const Event& event, EventOrdinal ordinal) {
  const UnitId unit = units_.live(view.unit);
  const BlockState state = view.block_state();
  const bool overwritten = view.noted != 0 && state == BlockState::kLoadedShared;
  if (unit != 0 && !overwritten) {
    if (state == BlockState::kStored) view.set(BlockState::kTrueDep);
    const UnitSet computed = stored(state) ? kComputed : all & kComputed;
    return units_.merge(all & ~kComputed, unit) | computed;
  }
  if (all == 0) all = units_.create();
  view.unit = all & ~kComputed;
  view.set(BlockState::kLoaded);
  view.input = 1;
  remember(view, event, ordinal);
  return all;
}

UnitSet Online::load_blocks(const Event& event, EventOrdinal ordinal) {
  const auto end_if_read_back = [&](const View& view) {
    if (view.block_state() != BlockState::kStoredShared) return;
    if (const UnitId unit = units_.live(view.unit); unit != 0) end_unit(unit);
  };
  if (View* cell = blocks_.only_cell(event.address, event.size); cell != nullptr) {
    View& view = own_view(*cell, event, ordinal);
    end_if_read_back(view);
    return load_view(view, 0, event, ordinal);
  }
  // First every shared dependence ends its unit, then what is still alive is merged.
  blocks_.for_each_cell(event.address, event.size,
                        [&](View& cell) { end_if_read_back(own_view(cell, event, ordinal)); });
  UnitSet all = 0;
  blocks_.for_each_cell(event.address, event.size, [&](View& cell) {
    all = load_view(own_view(cell, event, ordinal), all, event, ordinal);
  });
  return all;
}

void Online::store_view(View& view, UnitId owner, const Event& event, EventOrdinal ordinal) {
  const UnitId before = units_.live(view.unit);
  if (before == 0) view.set(BlockState::kIdle);
  if (before != owner) view.input = 0;
  view.unit = owner;
  if (view.input == 0 || !options_.inputs_only) remember(view, event, ordinal);
  const BlockState state = view.block_state();
  if (state == BlockState::kIdle || state == BlockState::kLoaded) {
    view.set(BlockState::kStored);
  } else if (state == BlockState::kLoadedShared) {
    view.set(BlockState::kStoredShared);
  }
}

void Online::store_blocks(const Event& event, EventOrdinal ordinal, UnitId owner) {
  if (View* cell = blocks_.only_cell(event.address, event.size); cell != nullptr) {
    store_view(own_view(*cell, event, ordinal), owner, event, ordinal);
    return;
  }
  blocks_.for_each_cell(event.address, event.size, [&](View& cell) {
    store_view(own_view(cell, event, ordinal), owner, event, ordinal);
  });
}

Online::Tag Online::load(const Event& event, EventOrdinal ordinal, Tags address,
                         Control /*control*/) {
  Tag tag = load_blocks(event, ordinal);
  if (options_.propagate_address) {
    for (std::uint32_t i = 0; i < address.size(); ++i) tag = join(event.thread, tag, address[i]);
  }
  return tag;
}

void Online::store(const Event& event, EventOrdinal ordinal, Tags data, Tags address,
                   Control control) {
  write(event, ordinal, data, 0, address, control);
}

Online::Tag Online::update(const Event& event, EventOrdinal ordinal, Tags data, Tags address,
                           Control control) {
  const Tag read = load(event, ordinal, address, control);
  write(event, ordinal, data, read, address, control);
  return read;
}

void Online::write(const Event& event, EventOrdinal ordinal, Tags data, UnitSet read, Tags address,
                   Control control) {
  // Merging first and then looking at the one unit is the same as looking at all of them.
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
  }
  for (std::uint32_t i = 0; i < address.size(); ++i)
    check(address[i], event, ordinal, Through::kAddress);
  check_control(control, event, ordinal);
  store_blocks(event, ordinal, owner);
}

// What an edge's branch decided is connected to the branch only where control connects at all.
Online::Tag Online::choose(ThreadId thread, Tag value, Control edge) {
  if (!options_.merge_control || edge == 0) return value;
  units_.for_each_condition(edge, [&](UnitSet units) { value = join(thread, value, units); });
  return value;
}

// ---- the check ----------------------------------------------------------------------------------

void Online::check(UnitSet set, const Event& store, EventOrdinal ordinal, Through through) {
  if (set == 0) return;
  units_.for_each_live(set, [&](UnitId unit) {
    if (units_.noted(unit)) report(unit, store, ordinal, through);
  });
}

void Online::check_control(Control control, const Event& store, EventOrdinal ordinal) {
  if (units_.quiet_since_last_time(control)) return;
  units_.for_each_condition(
      control, [&](UnitSet units) { check(units, store, ordinal, Through::kControl); });
}

void Online::report(UnitId unit, const Event& store, EventOrdinal ordinal, Through through) {
  for (Overwrite& overwrite : units_.take_notes(unit)) {
    violations_.push_back(
        {overwrite.inside, overwrite.remote, narrator_.witness(store, ordinal), unit, through});
  }
}

std::vector<UnitMember> Online::members(UnitId unit) {
  const UnitId wanted = units_.live(unit);
  std::map<SiteId, UnitMember> latest;
  blocks_.for_each_view([&](const View& view, Address address, std::uint32_t size) {
    if (view.unit == 0 || units_.live(view.unit) != wanted || wanted == 0) return;
    UnitMember& member = latest[contexts_[view.context].site];
    if (member.access.ordinal != kNoEvent && member.access.ordinal >= view.ordinal) return;
    member = {remembered(view, address, size), view.input != 0};
  });
  std::vector<UnitMember> out;
  out.reserve(latest.size());
  for (const auto& [site, member] : latest) out.push_back(member);
  std::sort(out.begin(), out.end(), [](const UnitMember& a, const UnitMember& b) {
    return a.access.ordinal < b.access.ordinal;
  });
  return out;
}

// Most units die young, and sets sooner; what refers to them is renumbered away when they outnumber
// the living. Sets are referred to by registers only, units by every block in use.
void Online::collect_when_due() {
  since_check_ = 0;
  const auto registers = [&](auto& renumbering) {
    machine_.for_each([&](Tag& tag) { renumbering.set(tag); },
                      [&](Control& control) { renumbering.control(control); });
  };
  if (units_.unit_bytes() >= collect_units_at_) {
    units_.renumber([&](auto& renumbering) {
      registers(renumbering);
      blocks_.for_each_view([&](View& view, Address, std::uint32_t) {
        renumbering.unit(view.unit);
        if (view.unit == 0) view.set(BlockState::kIdle);
      });
    });
    collect_units_at_ =
        std::max(options_.collect_bytes, units_.unit_bytes() + units_.unit_bytes() / 2);
  } else if (units_.set_bytes() >= collect_sets_at_) {
    units_.renumber_sets(registers);
    collect_sets_at_ = std::max(options_.collect_bytes / 8, 2 * units_.set_bytes());
  }
}

}  // namespace heddle::svd
