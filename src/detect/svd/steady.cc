// Online's part of steady rounds (flow/rounds.h): what it sees of a loop's accesses, and what
// becomes of it in further rounds.
//
// A cell says all that Online remembers of a block; what else a round depends on are registers and
// what is known of units. A unit that begins in a round and is merged into an older one in it might
// as well never have begun: in further rounds the older one takes its place from the start.
#include "detect/svd/online.h"

#include <algorithm>
#include <cstring>

namespace heddle::svd {
namespace {

// What a cell looks like in one round and in the next.
std::uint64_t in_turns(std::uint32_t first, std::uint32_t second) {
  return std::uint64_t{second} << 32 | first;
}
std::uint64_t two_at(const Cell* cells) {
  std::uint64_t two = 0;
  std::memcpy(&two, cells, sizeof two);
  return two;
}

void fill(Cell* cells, std::uint64_t count, std::uint64_t looks) {
  for (std::uint64_t i = 0; i < count; i += 2)
    std::memcpy(static_cast<void*>(cells + i), &looks, sizeof looks);
}

}  // namespace

// Cells that mean the same look the same after this.
Cell& Online::up_to_date(Cell& cell) {
  const UnitId unit = units_.live(unit_of(cell));
  if (unit == 0 && is_last_read(cell)) return cell;
  cell = cell.with(unit == 0 ? 0 : cell.kind(), unit);
  return cell;
}

bool Online::is_calm(const Blocks::Near& near, const LiveItem& item, Cell cell) {
  return (item.kind == EventKind::kRead && near.is_calm_for_reads(cell)) ||
         (item.kind == EventKind::kWrite && near.is_calm_for_writes(cell));
}

bool Online::begin_sight(const LiveItem& item, Address address, Sight& sight) {
  Blocks::Near& near = blocks_.near_here(address);
  if (!Blocks::is_one(near, address, item)) return false;
  const Cell& cell = up_to_date(near.cells[Blocks::cell_of(address, item.shift)]);
  // A store there may be a lost update. Who has overwritten it may be gone, and the cell calm.
  if (kOverwritten.has(cell)) return false;
  sight = {.where = near.begin,
           .what = near.cells,
           .also = nullptr,
           .cell = &cell,
           .looks = std::bit_cast<std::uint32_t>(cell),
           .becomes = 0,
           .last = last_stores_[item.event.site].unit,
           .writes = item.kind != EventKind::kRead,
           .visited = near.visited,
           .moves = false,
           .sets_access = false,
           .begins = false,
           .begins_alone = false};
  return is_calm(near, item, cell);
}

// The page may be another one, where fewer are calm; or the cell has not been looked at since its
// unit was merged or ended.
bool Online::is_seen_beyond(Sight& sight, const LiveItem& item, Address address) {
  Blocks::Near& near = blocks_.near_here(address);
  if (!Blocks::is_one(near, address, item)) return false;
  const Cell cell = up_to_date(near.cells[Blocks::cell_of(address, item.shift)]);
  if (std::bit_cast<std::uint32_t>(cell) != sight.looks || !is_calm(near, item, cell)) return false;
  if (near.visited != sight.visited) return false;
  sight.where = near.begin;
  sight.what = near.cells;
  sight.also = sight.sets_access ? blocks_.accesses_of(near) : nullptr;
  return true;
}

bool Online::is_as_good_as(const Units::Knowledge& before) {
  watched_from_ = before.next;
  const std::optional<std::size_t> alone = units_.begun_alone(before);
  unexplained_ = alone.value_or(0);
  return alone.has_value() && units_.has_room_for(kFewUnits);
}

bool Online::end_sight(const LiveItem& item, Address address, ThreadId thread, const Tag* registers,
                       Control control, std::span<const Sight> others, Sight& sight) {
  Blocks::Near& near = blocks_.near_here(address);
  const std::uint64_t number = Blocks::cell_of(address, item.shift);
  // Another page may have taken its place, if both have the same.
  if (!Blocks::is_one(near, address, item) || near.cells + number != sight.cell) return false;
  Cell& cell = near.cells[number];
  const UnitId unit = units_.live(unit_of(cell));
  if (unit == 0) return false;
  cell.unit = unit & kMaxUnit;
  const auto previous = std::find_if(others.rbegin(), others.rend(),
                                     [&](const Sight& other) { return other.cell == sight.cell; });
  const bool is_first = previous == others.rend();
  if (item.kind == EventKind::kRead) {
    if (unit >= watched_from_) return false;
    const auto before = std::bit_cast<Cell>(sight.looks);
    const bool was_alive = units_.live(unit_of(before)) != 0;
    sight.begins = is_first && (!was_alive || !kReadOn.has(before));
    // Where the unit stores there again, nobody asks for the read before that.
    const bool reads_back = cell.block_state() == BlockState::kTrueDepRead &&
                            (is_first ? was_alive && kReadBack.has(before) : previous->writes);
    sight.sets_access = sight.begins || reads_back;
    sight.also = sight.sets_access ? blocks_.accesses_of(near) : nullptr;
  } else {
    if (!stores_calmly(item, unit, thread, registers, control)) return false;
    if (last_stores_[item.event.site].unit != unit) return false;
    if (unit >= watched_from_) {
      if (!is_first || !is_from_nowhere({registers, item.value.numbers()})) return false;
      sight.begins_alone = true;
      --unexplained_;
    }
  }
  sight.becomes = std::bit_cast<std::uint32_t>(cell);
  const bool is_another = item.kind == EventKind::kWrite && unit != sight.last;
  sight.moves = sight.becomes != sight.looks || is_another || sight.sets_access;
  return true;
}

// Whether the unit's store has nothing to report.
bool Online::stores_calmly(const LiveItem& item, UnitId unit, ThreadId thread, const Tag* registers,
                           Control control) {
  if (!units_.any_noted()) return true;
  const ThreadId owner = std::min(thread, kMaxThread);
  return !units_.noted(unit) && are_calm(owner, {registers, item.address.numbers()}) &&
         units_.is_calm(owner, control);
}

// In a steady round every value is of the one unit that is stored, or of none. So the next round is
// the same as long as cells and registers name the same units and these are what they were.
bool Online::recall(const LiveItem& item, Address address, ThreadId thread, const Tag* registers,
                    Control control, Sight& one, Sight& other) {
  if (!is_seen_beyond(one, item, address)) return false;
  for (const Sight* sight : {&one, &other}) {
    const bool alone = sight->begins_alone;
    const UnitId unit = alone ? 0 : unit_of(std::bit_cast<Cell>(sight->becomes));
    if (alone ? !units_.has_room_for(kFewUnits) : !units_.is_live_root(unit)) return false;
    if (item.kind == EventKind::kWrite && !stores_calmly(item, unit, thread, registers, control))
      return false;
  }
  other.where = one.where;
  other.what = one.what;
  other.also = other.sets_access ? blocks_.accesses_of(blocks_.near_here(address)) : nullptr;
  return true;
}

bool Online::is_from_nowhere(Tags data) {
  for (std::uint32_t i = 0; i < data.size(); ++i) {
    if (data[i] >= kSetBit || units_.live(data[i] & ~kComputed) != 0) return false;
  }
  return true;
}

// How many of them are like that from the first on; an even number.
std::uint64_t Online::count_alike(Cell* cells, std::uint64_t count, std::uint64_t looks) {
  std::uint64_t outdated = looks;  // what turned out to mean the same
  std::uint64_t alike = 0;
  for (; alike + 2 <= count; alike += 2) {
    Cell* const two = cells + alike;
    const std::uint64_t seen = two_at(two);
    if (seen == looks) continue;
    if (seen != outdated) {
      up_to_date(two[0]);
      up_to_date(two[1]);
      if (two_at(two) != looks) break;
      outdated = seen;
    } else {
      fill(two, 2, looks);
    }
  }
  return alike;
}

std::uint64_t Online::go_through(const Stretch& stretch, std::uint64_t rounds, ThreadId thread,
                                 EventOrdinal ordinal) {
  const std::size_t count = stretch.items.size();
  const auto moves = [&](std::size_t i) { return stretch.one[i].moves || stretch.other[i].moves; };
  for (std::size_t i = 0; i < count; ++i) {
    const LiveItem& item = stretch.items[i];
    const Address where = stretch.where[i];
    if ((where & item.mask) != stretch.one[i].where ||
        (where & item.mask) != stretch.other[i].where)
      return 0;
    const bool stays = stretch.steps[i] == 0;
    if (stays ? moves(i) || stretch.one[i].looks != stretch.other[i].looks
              : stretch.steps[i] != std::uint64_t{1} << item.shift) {
      return 0;
    }
    if (!stays) rounds = std::min(rounds, Blocks::cells_from(where, item.shift));
  }
  rounds &= ~std::uint64_t{1};
  // What one access changes, no other one must see in a later round.
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t other = 0; moves(i) && other < count; ++other) {
      const std::uint64_t apart = stretch.where[i] - stretch.where[other];
      const std::uint64_t reach = rounds << stretch.items[i].shift;
      if (apart == 0 && stretch.steps[i] == stretch.steps[other]) continue;
      if (apart + reach < 2 * reach) return 0;
    }
  }
  const auto cells = [&](std::size_t i) {
    return static_cast<Cell*>(stretch.one[i].what) +
           Blocks::cell_of(stretch.where[i], stretch.items[i].shift);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t looks = stretch.one[i].looks;
    if (stretch.steps[i] != 0) {
      rounds = count_alike(cells(i), rounds, in_turns(looks, stretch.other[i].looks));
    } else if (std::bit_cast<std::uint32_t>(up_to_date(*cells(i))) != looks) {
      return 0;
    }
  }
  if (rounds == 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (moves(i))
      fill(cells(i), rounds, in_turns(stretch.one[i].becomes, stretch.other[i].becomes));
    set_accesses(stretch, i, rounds, thread, ordinal);
  }
  begin_alone(stretch, rounds);
  for (std::size_t i = 0; i < count; ++i) {
    LiveItem& item = stretch.items[i];
    if (item.kind != EventKind::kWrite) continue;
    const std::uint64_t last = rounds - 1;
    const UnitId unit = unit_of(cells(i)[stretch.steps[i] == 0 ? 0 : last]);
    // It may have been another one's in between.
    if (last_stores_[item.event.site].unit != unit ||
        unit_of(std::bit_cast<Cell>(stretch.one[i].becomes)) != unit) {
      remember_store(item, thread, stretch.where[i] + last * stretch.steps[i],
                     ordinal + last * stretch.events + i + 1, unit);
    }
  }
  return rounds;
}

// In the order in which they would have: of two that are merged, the older one stays.
void Online::begin_alone(const Stretch& stretch, std::uint64_t rounds) {
  const auto begins = [](const Sight& sight) { return sight.begins_alone; };
  const std::size_t count = stretch.items.size();
  if (std::none_of(stretch.one, stretch.one + count, begins) &&
      std::none_of(stretch.other, stretch.other + count, begins)) {
    return;
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Sight* const sights = round % 2 == 0 ? stretch.one : stretch.other;
    for (std::size_t i = 0; i < count; ++i) {
      if (!sights[i].begins_alone) continue;
      const std::uint64_t first = Blocks::cell_of(stretch.where[i], stretch.items[i].shift);
      static_cast<Cell*>(sights[i].what)[first + round].unit = units_.create() & kMaxUnit;
    }
  }
}

void Online::set_accesses(const Stretch& stretch, std::size_t i, std::uint64_t rounds,
                          ThreadId thread, EventOrdinal ordinal) {
  LiveItem& item = stretch.items[i];
  const std::uint64_t first = Blocks::cell_of(stretch.where[i], item.shift);
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    const Sight& sight = turn == 0 ? stretch.one[i] : stretch.other[i];
    if (!sight.sets_access) continue;
    auto& accesses = *static_cast<Accesses*>(sight.also);
    for (std::uint64_t round = turn; round < rounds; round += 2) {
      blocks_.set_access(accesses, first + round,
                         access_ref(item, thread, ordinal + round * stretch.events + i + 1));
      if (sight.begins) units_.count_one_more();
    }
  }
}

}  // namespace heddle::svd
