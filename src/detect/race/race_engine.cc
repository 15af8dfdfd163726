#include "detect/race/race_engine.h"

#include <algorithm>

namespace heddle::race {
namespace {

AccessClass class_of(const Event& event) {
  const bool atomic = event.order != MemoryOrder::kPlain;
  if (is_write(event.kind)) return atomic ? AccessClass::kAtomicWrite : AccessClass::kWrite;
  return atomic ? AccessClass::kAtomicRead : AccessClass::kRead;
}

constexpr bool is_write(AccessClass c) {
  return c == AccessClass::kWrite || c == AccessClass::kAtomicWrite;
}
constexpr bool is_atomic(AccessClass c) {
  return c == AccessClass::kAtomicRead || c == AccessClass::kAtomicWrite;
}

constexpr bool conflict(AccessClass a, AccessClass b) {
  return (is_write(a) || is_write(b)) && !(is_atomic(a) && is_atomic(b));
}

// Does whatever conflicts with `earlier` conflict with `later` too?
constexpr bool stands_for(AccessClass later, AccessClass earlier) {
  return (is_write(later) || !is_write(earlier)) && (!is_atomic(later) || is_atomic(earlier));
}
static_assert(stands_for(AccessClass::kWrite, AccessClass::kAtomicRead));
static_assert(stands_for(AccessClass::kRead, AccessClass::kAtomicRead));
static_assert(!stands_for(AccessClass::kRead, AccessClass::kAtomicWrite));
static_assert(!stands_for(AccessClass::kAtomicWrite, AccessClass::kRead));

}  // namespace

// The common case, done with at once: a plain access to a cell of its own, everything before it
// ordered, nothing but perhaps reads in the list.
bool RaceEngine::is_simple(const Event& event, EventOrdinal ordinal) {
  if (event.order != MemoryOrder::kPlain) return false;
  const CellId id = history_.pieces().find_exactly(event.address, event.size);
  if (id == 0) return false;
  Cell& cell = history_.cell(id);
  const Slot slot = happens_before_.slot(event.thread);
  const HappensBefore::View now = happens_before_.view(event.thread);
  if (!now.ordered(cell.write.slot, cell.write.time)) return false;
  const auto fill = [&](Access& access) {
    access = {time_of(ordinal), slot, event.site, stacks_.current(event.thread),
              locks_.current(event.thread)};
  };
  if (event.kind == EventKind::kRead) {
    if (cell.further != 0) {
      FurtherAccesses& further = history_.existing(cell);
      if (further.has_writes()) return false;
      if (cell.read.slot == slot) {
        fill(cell.read);
        return true;
      }
      FurtherAccess* const mine = further.read_of(slot);
      if (mine == nullptr) return false;
      fill(mine->access);
      return true;
    }
    if (!now.ordered(cell.read.slot, cell.read.time)) return false;
    fill(cell.read);
    cell.read_operation = {EventKind::kRead, MemoryOrder::kPlain};
    return true;
  }
  if (cell.further != 0 || !now.ordered(cell.read.slot, cell.read.time)) return false;
  if (schedulable_) schedulable_->adopt_slot(event.thread, slot);
  fill(cell.write);
  cell.write_operation = {event.kind, MemoryOrder::kPlain};
  cell.write_clock = schedulable().clock(event.thread);
  cell.read = {};
  return true;
}

void RaceEngine::on_access(const Event& event, EventOrdinal ordinal, bool may_order) {
  const bool atomic = event.order != MemoryOrder::kPlain;
  if (atomic && may_order) happens_before_.on_atomic_read(event);
  Now now;
  now.access = {time_of(ordinal), happens_before_.slot(event.thread), event.site,
                stacks_.current(event.thread), locks_.current(event.thread)};
  now.operation = {event.kind, event.order};
  now.access_class = class_of(event);
  now.thread = event.thread;
  if (schedulable_) {
    schedulable_->adopt_slot(event.thread, now.access.slot);
    if (atomic && may_order) schedulable_->on_atomic_read(event);
  }

  touched_.clear();
  history_.pieces().cover(event.address, event.size, [&](CellId piece, Address address) {
    check(now, piece, address);
    touched_.push_back(piece);
  });
  // All checks came before what this access learns and leaves behind.
  learn_last_writes(now);
  for (const CellId id : touched_) remember(now, id);
  if (atomic) {
    happens_before_.on_atomic_write(event, ordinal, may_order);
    if (schedulable_) schedulable_->on_atomic_write(event, ordinal, may_order);
    collect_if_crowded();
  }
}

void RaceEngine::on_other(const Event& event, EventOrdinal ordinal) {
  happens_before_.on(event, ordinal);
  if (schedulable_) {
    schedulable_->adopt_slot(event.thread, happens_before_.slot(event.thread));
    if (event.kind == EventKind::kFork) {
      const auto child = static_cast<ThreadId>(event.value);
      schedulable_->adopt_slot(child, happens_before_.slot(child));
    }
    schedulable_->on(event, ordinal);
  }
  if (event.kind == EventKind::kAlloc) {
    history_.pieces().clear(event.address, event.value);
    blocks_[event.address] = event.value;
  } else if (event.kind == EventKind::kFree) {
    on_free(event, ordinal);
  }
  collect_if_crowded();
}

void RaceEngine::on_free(const Event& event, EventOrdinal ordinal) {
  const auto block = blocks_.find(event.address);
  const std::uint64_t known = block == blocks_.end() ? 0 : block->second;
  const std::uint64_t size = event.value != 0 ? event.value : known;
  if (block != blocks_.end()) blocks_.erase(block);
  Now now;
  now.access = {time_of(ordinal), happens_before_.slot(event.thread), event.site,
                stacks_.current(event.thread), locks_.current(event.thread)};
  now.operation = {event.kind, MemoryOrder::kPlain};
  now.access_class = AccessClass::kWrite;
  now.thread = event.thread;
  history_.pieces().cover_touched(event.address, size,
                                  [&](CellId id, Address address) { check(now, id, address); });
  last_writes_.clear();  // a Free reads nothing
  history_.pieces().clear(event.address, size);
}

void RaceEngine::check(const Now& now, CellId id, Address address) {
  Cell& cell = history_.cell(id);
  const auto races = [&](const Access& earlier, AccessClass earlier_class) {
    return earlier.time != 0 && conflict(earlier_class, now.access_class) &&
           !happens_before_.ordered(earlier.slot, earlier.time, now.thread);
  };
  bool any = false;
  if (races(cell.write, AccessClass::kWrite)) {
    report(now, cell, address, cell.write, cell.write_operation);
    any = true;
  }
  if (races(cell.read, AccessClass::kRead)) {
    report(now, cell, address, cell.read, cell.read_operation);
    any = true;
  }
  if (cell.further != 0) {
    for (const FurtherAccess& other : history_.existing(cell).all()) {
      if (!races(other.access, other.access_class)) continue;
      report(now, cell, address, other.access, other.operation);
      any = true;
    }
  }
  if (!any) return;
  cell.reported = true;
  if (heddle::is_read(now.operation.kind)) note_last_write(now, cell);
}

void RaceEngine::report(const Now& now, const Cell& cell, Address address, const Access& earlier,
                        Operation operation) {
  const bool is_schedulable =
      !schedulable_ || !schedulable_->ordered(earlier.slot, earlier.time, now.thread);
  if (cell.reported && !is_schedulable) return;
  Race race;
  race.address = address;
  race.size = cell.last - cell.first + 1u;
  race.earlier = {earlier, operation};
  race.later = {now.access, now.operation};
  race.first = !cell.reported;
  race.schedulable = is_schedulable;
  sink_.on_race(race);
}

// The write whose value a racing read sees, if it is the other side of a race.
void RaceEngine::note_last_write(const Now& now, const Cell& cell) {
  const Access* last = &cell.write;
  ClockId clock = cell.write_clock;
  AccessClass last_class = AccessClass::kWrite;
  if (cell.further != 0) {
    for (const FurtherAccess& other : history_.existing(cell).all()) {
      if (!is_write(other.access_class) || other.access.time <= last->time) continue;
      last = &other.access;
      clock = other.clock;
      last_class = other.access_class;
    }
  }
  if (last->time == 0 || !conflict(last_class, now.access_class)) return;
  last_writes_.push_back({clock, last->slot, last->time});
}

void RaceEngine::learn_last_writes(const Now& now) {
  if (last_writes_.empty()) return;
  if (!schedulable_) schedulable_ = happens_before_;
  for (const Moment& write : last_writes_) schedulable_->learn(now.thread, write);
  last_writes_.clear();
}

void RaceEngine::remember(const Now& now, CellId id) {
  Cell& cell = history_.cell(id);
  const auto stood_for = [&](const Access& earlier, AccessClass earlier_class) {
    return stands_for(now.access_class, earlier_class) &&
           happens_before_.ordered(earlier.slot, earlier.time, now.thread);
  };
  if (cell.further != 0) {
    FurtherAccesses& list = history_.existing(cell);
    list.remove_if(
        [&](const FurtherAccess& other) { return stood_for(other.access, other.access_class); });
    if (list.empty()) history_.drop_further(cell);
  }
  if (stood_for(cell.read, AccessClass::kRead)) cell.read = {};
  const ClockId clock = is_write(now.access_class) ? schedulable().clock(now.thread) : 0;

  if (now.access_class == AccessClass::kWrite) {
    if (cell.write.time != 0 && !stood_for(cell.write, AccessClass::kWrite)) {
      history_.further(cell).add(
          {cell.write, cell.write_clock, AccessClass::kWrite, cell.write_operation});
    }
    cell.write = now.access;
    cell.write_clock = clock;
    cell.write_operation = now.operation;
    return;
  }
  if (now.access_class == AccessClass::kRead && cell.read.time == 0) {
    cell.read = now.access;
    cell.read_operation = now.operation;
    return;
  }
  history_.further(cell).add({now.access, clock, now.access_class, now.operation});
}

// What writes remember belongs to the schedulable relation once there is one.
void RaceEngine::collect_if_crowded() {
  const std::size_t roots = history_.cells();
  if (!happens_before_.wants_collection(roots) &&
      !(schedulable_ && schedulable_->wants_collection(roots))) {
    return;
  }
  if (schedulable_) {
    happens_before_.begin_collection();
    happens_before_.end_collection();
  }
  HappensBefore& remembered = schedulable();
  remembered.begin_collection();
  history_.for_each_clock([&](ClockId clock) { remembered.keep(clock); });
  remembered.end_collection();
}

}  // namespace heddle::race
