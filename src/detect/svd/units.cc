#include "detect/svd/units.h"

#include <algorithm>

namespace heddle::svd {

// Number 0 of everything means "none".
Units::Units(std::uint32_t set_limit, std::size_t note_limit)
    : set_limit_(set_limit), note_limit_(note_limit), notes_(1) {
  units_.push_back({});
  pairs_.push_back({});
  controls_.push_back({});
}

UnitId Units::create() {
  ++created_;
  return static_cast<UnitId>(units_.push_back({}));
}

UnitId Units::root(UnitId id) {
  while (true) {
    Unit& unit = units_[id];
    if (unit.parent == 0 || unit.parent == kEnded) return id;
    const UnitId above = units_[unit.parent].parent;
    if (above != 0 && above != kEnded) unit.parent = above;
    id = unit.parent;
  }
}

void Units::end(UnitId id) {
  Unit& unit = units_[root(id)];
  unit.parent = kEnded;
  if (unit.pending == 0) return;
  notes_[unit.pending] = {};
  free_notes_.push_back(std::exchange(unit.pending, 0));
}

// ---- sets
// ----------------------------------------------------------------------------------------

UnitSet Units::pair(UnitSet a, UnitSet b, std::uint32_t size) {
  return static_cast<UnitSet>(pairs_.push_back({a, b, size})) | kSetBit;
}

UnitSet Units::join(UnitSet a, UnitSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a < kSetBit && (a = updated(a)) == 0) return b;
  if (b < kSetBit && (b = updated(b)) == 0) return a;
  if (((a ^ b) & ~kComputed) == 0 && a < kSetBit) return a | b;
  // The usual set is a running sum, and what is added is often what was added before.
  if (a >= kSetBit && b < kSetBit) {
    const Pair& both = pairs_[a & ~kSetBit];
    const auto has = [&](UnitSet one) {
      return one < kSetBit && ((one = updated(one)) == b || one == (b | kComputed));
    };
    if (has(both.left) || has(both.right)) return a;
  }
  const std::uint32_t size = size_of(a) + size_of(b);
  const UnitSet both = pair(a, b, size);
  return size <= set_limit_ ? both : shrink(both);
}

// Counts exactly; merges what is too many.
UnitSet Units::shrink(UnitSet set) {
  std::vector<UnitSet> all;
  UnitSet computed = 0;
  for_each_element(set, [&](UnitSet one) {
    if ((one = updated(one)) != 0) all.push_back(one);
    computed |= one & kComputed;
  });
  // Of one unit, the computed value stays.
  std::sort(all.begin(), all.end(), [](UnitSet a, UnitSet b) {
    return std::pair(a & ~kComputed, b & kComputed) < std::pair(b & ~kComputed, a & kComputed);
  });
  const auto same = [](UnitSet a, UnitSet b) { return ((a ^ b) & ~kComputed) == 0; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  UnitSet out = 0;
  if (all.size() > set_limit_) {
    for (const UnitSet one : all) out = merge(out, one & ~kComputed);
    return out | computed;
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) out = i == 0 ? all[i] : pair(out, all[i], i + 1);
  return out;
}

UnitSet Units::compared(UnitSet set) {
  if (set < kSetBit) return set & ~kComputed;
  bool computed = false;
  for_each_element(set, [&](UnitSet one) { computed |= (updated(one) & kComputed) != 0; });
  return computed ? merge_all(0, set) : set;
}

UnitId Units::merge(UnitId a, UnitId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) std::swap(a, b);  // the older one stays: chains of merges stay short
  Unit& into = units_[a];
  Unit& from = units_[b];
  from.parent = a;
  if (const std::uint32_t pending = std::exchange(from.pending, 0); pending != 0) {
    ++alarms_;
    if (into.pending == 0) {
      into.pending = pending;
    } else {
      std::vector<Overwrite>& notes = notes_[into.pending];
      const std::size_t room = note_limit_ - std::min(note_limit_, notes.size());
      const auto end = notes_[pending].begin() +
                       static_cast<std::ptrdiff_t>(std::min(room, notes_[pending].size()));
      notes.insert(notes.end(), notes_[pending].begin(), end);
      notes_[pending] = {};
      free_notes_.push_back(pending);
    }
  } else if (into.pending != 0) {
    ++alarms_;
  }
  return a;
}

UnitId Units::merge_all(UnitId into, UnitSet set) {
  for_each_live(set, [&](UnitId unit) { into = merge(into == 0 ? 0 : live(into), unit); });
  return into;
}

// ---- notes
// ---------------------------------------------------------------------------------------

void Units::note(UnitId id, Overwrite overwrite) {
  ++alarms_;
  Unit& unit = units_[id];
  if (unit.pending == 0) {
    if (free_notes_.empty()) {
      unit.pending = static_cast<std::uint32_t>(notes_.size());
      notes_.emplace_back();
    } else {
      unit.pending = free_notes_.back();
      free_notes_.pop_back();
    }
  }
  // Accesses that have several blocks in common are one note.
  std::vector<Overwrite>& notes = notes_[unit.pending];
  if (notes.size() >= note_limit_) return;
  for (auto known = notes.rbegin();
       known != notes.rend() && known->remote.ordinal == overwrite.remote.ordinal; ++known) {
    if (known->inside.ordinal == overwrite.inside.ordinal) return;
  }
  notes.push_back(std::move(overwrite));
}

std::vector<Overwrite> Units::take_notes(UnitId id) {
  const std::uint32_t pending = std::exchange(units_[id].pending, 0);
  if (pending == 0) return {};
  free_notes_.push_back(pending);
  return std::exchange(notes_[pending], {});
}

// ---- control
// -------------------------------------------------------------------------------------

Control Units::control(SegmentId branch, UnitSet condition, Control outer) {
  if (outer != 0 && (controls_[outer].branches & bit_of(branch)) != 0) {
    // A loop's branch is usually controlled by its own last execution.
    if (controls_[outer].branch == branch) {
      if (controls_[outer].condition == condition) return outer;
      outer = controls_[outer].outer;
    } else {
      outer = without(branch, outer);
    }
  }
  return condition == 0 ? outer : new_control(branch, condition, outer);
}

Control Units::without(SegmentId branch, Control control) {
  std::vector<std::pair<SegmentId, UnitSet>> kept;
  Control at = control;
  for (; at != 0 && controls_[at].branch != branch; at = controls_[at].outer)
    kept.emplace_back(controls_[at].branch, controls_[at].condition);
  if (at == 0) return control;
  at = controls_[at].outer;
  for (; !kept.empty(); kept.pop_back())
    at = new_control(kept.back().first, kept.back().second, at);
  return at;
}

}  // namespace heddle::svd
