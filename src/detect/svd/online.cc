#include "detect/svd/online.h"

#include <algorithm>

namespace heddle::svd {
namespace {

// Beyond a hundred thousand threads, the last ones share a view.
ThreadId view_thread(const Event& event) {
  return std::min(event.thread, kMaxThread);
}

bool stored(BlockState state) {
  return state == BlockState::kStored || state == BlockState::kStoredShared ||
         state == BlockState::kTrueDep;
}

}  // namespace

Online::Online(const Catalog& catalog, const OnlineOptions& options)
    : options_(options),
      units_(options.set_limit),
      blocks_(options.block_size),
      machine_(catalog, *this),
      narrator_(catalog),
      contexts_(1),
      collect_at_(options.collect_bytes) {}

std::size_t Online::on(std::span<const Event> batch, EventOrdinal first) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Event& event = batch[i];
    if (!is_access(event.kind) && event.kind != EventKind::kSegment) bookkeeping(event);
    machine_.on(event, first + i);
    if (units_.bytes() >= collect_at_) collect();
    if (!violations_.empty()) return i + 1;
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

View& Online::own_view(View& cell, const Event& event, EventOrdinal ordinal) {
  return blocks_.own(
      cell, view_thread(event), [&](const View& view) { return alive(view); },
      [&](View& view) { remote_access(view, event, ordinal); });
}

void Online::remote_access(View& view, const Event& event, EventOrdinal ordinal) {
  const BlockState state = view.block_state();
  const UnitId unit = units_.live(view.unit);
  if (view.noted == 0) {
    const bool conflicts =
        (view.input != 0 && is_write(event.kind)) || (!options_.inputs_only && stored(state));
    if (conflicts) {
      units_.note(unit, {remembered(view, event), narrator_.witness(event, ordinal)});
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

// The address of the inside access is not kept: what it has in common with the remote one is the
// place.
Witness Online::remembered(const View& view, const Event& remote) const {
  const Context& context = contexts_[view.context];
  Witness out;
  out.thread = static_cast<ThreadId>(view.thread);
  out.kind = context.kind;
  out.site = context.site;
  out.stack = context.stack;
  out.locks = context.locks;
  out.ordinal = view.ordinal;
  out.address = remote.address;
  out.size = remote.size;
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

UnitId Online::load_blocks(const Event& event, EventOrdinal ordinal) {
  // First every shared dependence ends its unit, then what is still alive is merged.
  blocks_.for_each_cell(event.address, event.size, [&](View& cell) {
    const View& view = own_view(cell, event, ordinal);
    if (view.block_state() == BlockState::kStoredShared) {
      if (const UnitId unit = units_.live(view.unit); unit != 0) end_unit(unit);
    }
  });
  UnitId all = 0;
  blocks_.for_each_cell(event.address, event.size, [&](View& cell) {
    View& view = own_view(cell, event, ordinal);
    if (const UnitId unit = units_.live(view.unit); unit != 0) {
      all = units_.merge(all, unit);
      if (view.block_state() == BlockState::kStored) view.set(BlockState::kTrueDep);
      return;
    }
    if (all == 0) all = units_.create();
    view.unit = all;
    view.set(BlockState::kLoaded);
    view.input = 1;
    remember(view, event, ordinal);
  });
  return all;
}

void Online::store_blocks(const Event& event, EventOrdinal ordinal, UnitId owner) {
  blocks_.for_each_cell(event.address, event.size, [&](View& cell) {
    View& view = own_view(cell, event, ordinal);
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
  for (std::uint32_t i = 0; i < data.size(); ++i) check(data[i], event, ordinal);
  for (std::uint32_t i = 0; i < address.size(); ++i) check(address[i], event, ordinal);
  check(read, event, ordinal);
  check_control(control, event, ordinal);

  UnitId owner = units_.merge_all(0, read);
  for (std::uint32_t i = 0; i < data.size(); ++i) owner = units_.merge_all(owner, data[i]);
  if (options_.propagate_address) {
    for (std::uint32_t i = 0; i < address.size(); ++i) owner = units_.merge_all(owner, address[i]);
  }
  if (options_.merge_control) {
    units_.for_each_condition(control,
                              [&](UnitSet units) { owner = units_.merge_all(owner, units); });
  }
  if (owner == 0) owner = units_.create();
  store_blocks(event, ordinal, owner);
}

// What an edge's branch decided is connected to the branch only where control connects at all.
Online::Tag Online::choose(ThreadId thread, Tag value, Control edge) {
  if (!options_.merge_control || edge == 0) return value;
  units_.for_each_condition(edge, [&](UnitSet units) { value = join(thread, value, units); });
  return value;
}

// ---- the check ----------------------------------------------------------------------------------

void Online::check(UnitSet set, const Event& store, EventOrdinal ordinal) {
  if (set == 0) return;
  units_.for_each_live(set, [&](UnitId unit) {
    if (units_.noted(unit)) report(unit, store, ordinal);
  });
}

void Online::check_control(Control control, const Event& store, EventOrdinal ordinal) {
  if (units_.quiet_since_last_time(control)) return;
  units_.for_each_condition(control, [&](UnitSet units) { check(units, store, ordinal); });
}

void Online::report(UnitId unit, const Event& store, EventOrdinal ordinal) {
  for (Overwrite& overwrite : units_.take_notes(unit)) {
    violations_.push_back({overwrite.inside, overwrite.remote, narrator_.witness(store, ordinal)});
  }
}

// Most units die young; what refers to them is renumbered away when they outnumber the living.
void Online::collect() {
  units_.renumber([&](auto& renumbering) {
    machine_.for_each([&](Tag& tag) { renumbering.set(tag); },
                      [&](Control& control) { renumbering.control(control); });
    blocks_.for_each_view([&](View& view) {
      renumbering.unit(view.unit);
      if (view.unit == 0) view.set(BlockState::kIdle);
    });
  });
  collect_at_ = std::max(options_.collect_bytes, units_.bytes() + units_.bytes() / 2);
}

}  // namespace heddle::svd
