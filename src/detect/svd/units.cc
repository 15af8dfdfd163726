#include "detect/svd/units.h"

#include <algorithm>

namespace heddle::svd {

// Number 0 of everything means "none".
Units::Units(std::uint32_t set_limit, std::size_t note_limit)
    : set_limit_(set_limit), notes_(note_limit) {
  words_.push_back(kEnded);
  words_.push_back(0);  // kNobody
  forget_sets();
}

void Units::forget_sets() {
  pairs_.clear();
  pairs_.push_back({});
  controls_.clear();
  controls_.push_back({});
}

UnitId Units::create_beyond() {
  if (live(kMaxUnit) == 0) words_[kMaxUnit] = 0;
  return live(kMaxUnit);
}

// Follows the parents and shortens the way for those who come later.
UnitId Units::root(UnitId id) {
  while (true) {
    Word& word = words_[id];
    if (is_root(word)) return id;
    const Word above = words_[word];
    if (!is_root(above)) word = above;
    id = word;
  }
}

UnitId Units::live_slowly(UnitId id) {
  const UnitId found = root(id);
  return is_live(words_[found]) ? found : 0;
}

void Units::end(UnitId id, Because because) {
  ++changes_;
  const UnitId unit = root(id);
  free_notes(unit);
  words_[unit] = because == Because::kReadBack ? kEndedRead : kEnded;
}

bool Units::has_computed(UnitSet set, UnitId ended_read_unit) {
  bool has = false;
  for_each_element(set, [&](UnitSet one) {
    has = has || ((one & kComputed) != 0 && root(one & ~kComputed) == ended_read_unit);
  });
  return has;
}

std::optional<std::size_t> Units::begun_alone(const Knowledge& before) {
  if (changes_ != before.changes || merge_alarms_ != before.alarms) return std::nullopt;
  std::size_t alone = 0;
  for (UnitId id = before.next; id < words_.size(); ++id) {
    const UnitId unit = live(id);
    if (unit >= before.next && unit != id) return std::nullopt;  // with another new one
    if (unit == id) ++alone;
  }
  const std::size_t begun = words_.size() - before.next;
  if (merged_ - before.merged != begun - alone) return std::nullopt;  // some that were there
  return alone;
}

// ---- sets
// ----------------------------------------------------------------------------------------

// A loop makes the same ones in every round.
UnitSet Units::pair(UnitSet a, UnitSet b, std::uint32_t size) {
  UnitSet& recent = recent_pairs_[recent_place(a, b)];
  const Pair& last = pairs_[recent & ~kSetBit];
  if (last.left != a || last.right != b) {
    const UnitSet computed = computed_in(a) | computed_in(b);
    recent = static_cast<UnitSet>(pairs_.push_back({a, b, size, computed})) | kSetBit;
  }
  return recent;
}

UnitSet Units::join(UnitSet a, UnitSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a < kSetBit) a = updated(a);
  if (a == 0) return b;
  if (b < kSetBit) b = updated(b);
  if (b == 0) return a;
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

// Counts exactly; merges what is too many, and forgets what has ended then.
UnitSet Units::shrink(UnitSet set) {
  std::vector<UnitSet> all;
  UnitSet computed = 0;
  for_each_element(set, [&](UnitSet one) {
    one = updated(one);
    if (one != 0) all.push_back(one);
    if (is_live_root(one & ~kComputed)) computed |= one & kComputed;
  });
  // Of one unit, the computed value stays.
  std::sort(all.begin(), all.end(), [](UnitSet a, UnitSet b) {
    return std::pair(a & ~kComputed, b & kComputed) < std::pair(b & ~kComputed, a & kComputed);
  });
  const auto same = [](UnitSet a, UnitSet b) { return ((a ^ b) & ~kComputed) == 0; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  UnitSet out = 0;
  if (all.size() > set_limit_) {
    for (const UnitSet one : all) out = merge(out, live(one & ~kComputed));
    return out | computed;
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) out = i == 0 ? all[i] : pair(out, all[i], i + 1);
  return out;
}

UnitSet Units::several_compared(UnitSet set) {
  bool computed = false;
  for_each_element(
      set, [&](UnitSet one) { computed |= (one & kComputed) != 0 && live(one & ~kComputed) != 0; });
  return computed ? merge_all(0, set) : set;
}

// One of them, at least, has some.
void Units::move_notes(UnitId to, UnitId from) {
  ++merge_alarms_;
  if (!noted(from)) return;
  if (!noted(to)) {
    words_[to] = words_[from];
  } else {
    words_[to] = kNoted | notes_.append(words_[to] & ~kNoted, words_[from] & ~kNoted);
    --noted_units_;
  }
}

UnitId Units::merge_several(UnitId into, UnitSet set) {
  for_each_live(set, [&](UnitId unit) { into = merge(into == 0 ? 0 : live(into), unit); });
  return into;
}

// ---- notes
// ---------------------------------------------------------------------------------------

void Units::note(UnitId id, ThreadId owner, const Overwrite& overwrite) {
  if (owner >= alarms_.size()) alarms_.resize(owner + 1, 0);
  ++alarms_[owner];
  ++changes_;
  if (!noted(id)) ++noted_units_;
  words_[id] = kNoted | notes_.add(words_[id] & ~kNoted, overwrite);
}

void Units::free_notes(UnitId id) {
  if (!noted(id)) return;
  notes_.free(words_[id] & ~kNoted);
  words_[id] = 0;
  --noted_units_;
}

// ---- numbers
// -------------------------------------------------------------------------------------

// Sets come and go by the million: the memory that they leave is used for the next ones, which
// saves the kernel the trouble of clearing it.
void Units::begin(Renumbering& renumbering) {
  renumbering.fresh.pairs_ = std::move(spare_pairs_);
  renumbering.fresh.controls_ = std::move(spare_controls_);
  renumbering.fresh.forget_sets();
}

void Units::finish(Renumbering& renumbering) {
  spare_pairs_ = std::exchange(pairs_, std::move(renumbering.fresh.pairs_));
  spare_controls_ = std::exchange(controls_, std::move(renumbering.fresh.controls_));
  recent_pairs_ = renumbering.fresh.recent_pairs_;
}

// All that are marked are live roots; none moves up.
void Units::move_words(const Marked& marked) {
  std::size_t kept = 0;
  for (UnitId id = 0; id < words_.size(); ++id) {
    if (marked.has(id)) {
      words_[kept++] = words_[id];
    } else if (noted(id)) {
      free_notes(id);
    }
  }
  words_.truncate(kept);
}

// ---- control
// -------------------------------------------------------------------------------------

// The list without a branch that may be in it.
Control Units::without(SegmentId branch, Control control) {
  Control at = control;
  while (at != 0 && controls_[at].branch != branch) at = controls_[at].outer;
  if (at == 0) {
    controls_[control].absent = branch;
    return control;
  }
  kept_.clear();
  for (Control above = control; above != at; above = controls_[above].outer) kept_.push_back(above);
  at = controls_[at].outer;
  for (; !kept_.empty(); kept_.pop_back()) {
    const ControlNode node = controls_[kept_.back()];
    at = add_control(node.branch, node.condition, at, node.asked);
  }
  return at;
}

}  // namespace heddle::svd
