// Computational units as the online algorithm keeps them: references that are propagated, merged
// and ended (svd-2005, section 4.2).
//
// A unit is a number; one word for each says that it is alive, has ended or has been merged, and
// into which. Which blocks belong to a unit is known by the blocks: a block whose unit has ended is
// Idle, so ending a unit touches nothing but the unit.
//
// A register holds a *set* of units (UnitSet): none, one, or a tree of pairs. Sets are merged into
// one unit only at a store (figure 7, line 20); up to then a sum of two loads refers to both of
// their units. A set that outgrows its limit is merged at once: its units are connected through
// one value, so the definition puts them together anyway, and a sum over an array would otherwise
// carry a set as long as the array.
//
// A controlling branch is a Control: a list of branches, innermost first, each with the units that
// its condition came from. Every static branch is in a list at most once, with its latest
// execution, so that a loop does not lengthen it.
//
// A unit keeps so many notes of overwritten inputs and no more: whoever reads about the first two
// hundred needs no others.
//
// Numbers are never re-used; renumber() forgets those that nothing refers to, so that memory
// follows what is live. A reference is weak if no value can get the unit through it: of a unit that
// has weak references only, nobody will ever ask anything but whether it is another one than some
// live unit. They all become references to one unit that stands for such: kNobody.
#pragma once

#include "detect/svd/pool.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

using UnitId = std::uint32_t;   // 0 = none
using UnitSet = std::uint32_t;  // 0 = empty; without kSetBit: that one unit; else a pair
using Control = std::uint32_t;  // 0 = nothing

inline constexpr std::uint32_t kSetBit = 0x80000000u;
// Of one unit in a set: the value was computed by the thread, that is read from a block it wrote.
inline constexpr std::uint32_t kComputed = 0x40000000u;

// Units have 25 bits in a block's cell; those beyond are one.
inline constexpr UnitId kMaxUnit = (1u << 25) - 1;
// Lives for ever, has no notes and is never merged.
inline constexpr UnitId kNobody = 1;

// An access as a block remembers it: its context (online.h) and its ordinal.
using AccessRef = std::uint64_t;
inline constexpr unsigned kOrdinalBits = 41;

// Between a unit's access of a block (`inside`) and now, another thread has accessed it.
struct Overwrite {
  AccessRef inside{};
  AccessRef remote{};
  Address address{};  // of the remote access
  std::uint64_t value{};
  std::uint32_t size : 31 {};
  std::uint32_t has_value : 1 {};
  ThreadId remote_thread{};
};

class Units {
 public:
  explicit Units(std::uint32_t set_limit = 32, std::size_t note_limit = 256);

  UnitId create() {
    ++created_;
    if (words_.size() > kMaxUnit) return create_beyond();
    return static_cast<UnitId>(words_.push_back(0));
  }
  // What the unit has been merged into; 0 when that has ended, or for 0.
  UnitId live(UnitId id);
  // Whether it is a unit, alive and not merged into another.
  bool is_live_root(UnitId id) const { return words_[id] <= kNoted; }
  void end(UnitId id);

  UnitSet join(UnitSet a, UnitSet b);
  UnitId merge(UnitId a, UnitId b);  // of live roots, or 0 for none
  UnitId merge_all(UnitId into, UnitSet set) {
    if (set >= kSetBit) return merge_several(into, set);
    const UnitId unit = live(set & ~kComputed);
    return unit == into ? into : merge(into, unit);
  }
  // What a branch on values of this set leaves: one unit if a value was computed, else the set.
  UnitSet compared(UnitSet set) {
    if (set < kSetBit) return live(set & ~kComputed);
    return pairs_[set & ~kSetBit].computed == 0 ? set : several_compared(set);
  }

  template <typename Visit>
  void for_each_live(UnitSet set, Visit visit);
  // The same, of a thread's own set, if a unit of it may have got notes since this was last asked.
  // Whoever asks takes the notes.
  template <typename Visit>
  void for_each_alarmed(ThreadId thread, UnitSet set, Visit visit);
  // Whether that would visit no unit with notes.
  bool is_calm_set(ThreadId thread, UnitSet set) {
    if (set >= kSetBit) return pairs_[set & ~kSetBit].asked == alarms_of(thread);
    return !noted(live(set & ~kComputed));
  }

  // ---- overwritten inputs that no store has used yet ----
  void note(UnitId unit, ThreadId owner, const Overwrite& overwrite);
  bool noted(UnitId live_unit) const { return words_[live_unit] == kNoted; }
  bool any_noted() const { return !lists_.empty(); }
  // Calls take(overwrite) for each, the oldest first; then there are none.
  template <typename Take>
  void take_notes(UnitId live_unit, Take take);
  // Moves whenever a merge may have given a unit its first note. Whoever has taken the notes of the
  // merged unit may set it back.
  std::uint64_t merge_alarms() const { return merge_alarms_; }
  void set_merge_alarms(std::uint64_t alarms) { merge_alarms_ = alarms; }

  // ---- control ----
  Control control(SegmentId branch, UnitSet condition, Control outer) {
    const ControlNode& last = controls_[outer];
    if (last.branch == branch && last.condition == condition) return outer;  // a loop's, usually
    const bool not_there = (last.branches & bit_of(branch)) == 0 || last.absent == branch;
    if (condition == 0 && not_there) return outer;
    return new_control(branch, condition, outer);
  }
  template <typename Visit>  // visit(condition)
  void for_each_condition(Control control, Visit visit) const {
    for (; control != 0; control = controls_[control].outer) visit(controls_[control].condition);
  }
  // Whether no unit of a condition can have got notes since this was last asked.
  bool is_calm(ThreadId thread, Control control) const {
    return control == 0 || controls_[control].asked == alarms_of(thread);
  }
  // Calls visit(condition) for those whose units may have got notes since this was last asked.
  template <typename Visit>
  void for_each_alarmed_condition(ThreadId thread, Control control, Visit visit) {
    const std::uint64_t now = alarms_of(thread);
    while (control != 0 && controls_[control].asked != now) {
      const ControlNode node = controls_[control];
      controls_[control].asked = now;
      visit(node.condition);
      control = node.outer;
    }
  }

  std::size_t created() const { return created_; }
  std::size_t unit_bytes() const {
    return words_.size() * sizeof(Word) + (notes_.size() - free_notes_) * sizeof(NoteNode);
  }
  std::size_t set_bytes() const {
    return pairs_.size() * sizeof(Pair) + controls_.size() * sizeof(ControlNode);
  }

  // Renumbers: `visit_all(f)` must call f on every number that is kept anywhere (f.unit(UnitId&),
  // f.set(UnitSet&), f.control(Control&), and after all of these f.weak(UnitId&)); the rest is
  // forgotten.
  template <typename VisitAll>
  void renumber(VisitAll visit_all);

  // The same for sets and controls only; units keep their numbers and need no visit.
  template <typename VisitAll>
  void renumber_sets(VisitAll visit_all);

 private:
  template <bool kMoveUnits>
  struct Renumbering;

  // 0: a live root; kNoted: the same, with notes; kEnded: a root that has ended; else the parent,
  // which kNobody, unit 1, never is.
  using Word = std::uint32_t;
  static constexpr Word kEnded = 0xffffffffu;
  static constexpr Word kNoted = 1;
  static_assert(kNobody == kNoted);
  static bool is_root(Word word) { return word <= kNoted || word == kEnded; }

  static constexpr std::size_t kRecentPairs = 256;
  static std::size_t recent_place(UnitSet a, UnitSet b) {
    return (a * 0x9e3779b1u ^ b * 0x85ebca6bu) >> 24;
  }

  struct NoteNode {
    Overwrite overwrite;
    std::uint32_t next = 0;
  };
  struct NoteList {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t same_remote = 0;  // the first whose remote access is the last one's
    std::uint32_t count = 0;
  };
  struct Pair {
    UnitSet left{};
    UnitSet right{};
    std::uint32_t size{};         // an upper bound on the number of units
    UnitSet computed{};           // kComputed if an element has it
    std::uint64_t asked = ~0ull;  // alarms when no unit of it had notes
  };
  struct ControlNode {
    SegmentId branch{};
    UnitSet condition{};
    Control outer{};
    SegmentId absent{};           // a branch that was looked for in the list and is not there
    std::uint64_t asked = ~0ull;  // alarms when neither it nor an outer one had notes
    std::uint64_t branches{};     // a bit for each branch of the list, several to a bit
  };
  // Calls visit(one unit, with or without kComputed) for every element, dead ones included.
  template <typename Visit>
  void for_each_element(UnitSet set, Visit visit);
  std::uint64_t alarms_of(ThreadId thread) const {
    return merge_alarms_ + (thread < alarms_.size() ? alarms_[thread] : 0);
  }
  static std::uint64_t bit_of(SegmentId branch) { return 1ull << (branch & 63); }
  Control new_control(SegmentId branch, UnitSet condition, Control outer);
  Control add_control(SegmentId branch, UnitSet condition, Control outer,
                      std::uint64_t asked = ~0ull) {
    return static_cast<Control>(controls_.push_back(
        {branch, condition, outer, 0, asked, controls_[outer].branches | bit_of(branch)}));
  }

  void forget_sets();

  std::uint32_t size_of(UnitSet set) const {
    return set < kSetBit ? 1 : pairs_[set & ~kSetBit].size;
  }
  UnitSet computed_in(UnitSet set) const {
    return set < kSetBit ? set & kComputed : pairs_[set & ~kSetBit].computed;
  }
  UnitSet several_compared(UnitSet set);
  UnitId merge_several(UnitId into, UnitSet set);
  void move_notes(UnitId to, UnitId from);
  UnitSet pair(UnitSet a, UnitSet b, std::uint32_t size);
  UnitSet shrink(UnitSet set);
  Control without(SegmentId branch, Control control);
  UnitId root(UnitId id);
  UnitId live_slowly(UnitId id);
  UnitId create_beyond();
  std::uint32_t new_note(const Overwrite& overwrite);
  void free_notes(NoteList list);
  void append(NoteList& to, NoteList from);
  // The element with what its unit has been merged into; 0 when that has ended.
  UnitSet updated(UnitSet one) {
    const UnitId unit = live(one & ~kComputed);
    return unit == 0 ? 0 : unit | (one & kComputed);
  }

  std::uint32_t set_limit_;
  std::size_t note_limit_;
  Pool<Word> words_;  // by unit
  Pool<Pair> pairs_;
  std::array<UnitSet, kRecentPairs> recent_pairs_{};  // by a hash of their halves; or 0
  Pool<ControlNode> controls_;
  Pool<Pair> spare_pairs_;  // memory for the next renumbering
  Pool<ControlNode> spare_controls_;
  absl::flat_hash_map<UnitId, NoteList> lists_;  // of live roots
  Pool<NoteNode> notes_;
  std::uint32_t free_note_ = 0;  // a list of nodes
  std::size_t free_notes_ = 0;
  std::vector<UnitSet> walk_;  // scratch of for_each_live
  std::vector<Control> kept_;  // scratch of without
  std::size_t created_ = 0;
  std::vector<std::uint64_t> alarms_;  // by thread: how often one of its units got a note
  std::uint64_t merge_alarms_ = 0;
};

inline UnitId Units::live(UnitId id) {
  const Word word = words_[id];  // of 0 it says that it has ended
  return word <= kNoted ? id : word == kEnded ? 0 : live_slowly(id);
}

inline UnitId Units::merge(UnitId a, UnitId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) std::swap(a, b);  // the older one stays: chains of merges stay short
  if ((words_[a] | words_[b]) != 0) move_notes(a, b);
  words_[b] = a;
  return a;
}

template <typename Take>
void Units::take_notes(UnitId id, Take take) {
  if (words_[id] != kNoted) return;
  words_[id] = 0;
  const auto found = lists_.find(id);
  const NoteList list = found->second;
  lists_.erase(found);
  std::uint32_t at = list.first;
  for (std::uint32_t i = 0; i < list.count; ++i, at = notes_[at].next) take(notes_[at].overwrite);
  free_notes(list);
}

template <typename Visit>
void Units::for_each_live(UnitSet set, Visit visit) {
  for_each_element(set, [&](UnitSet one) {
    if (const UnitId unit = live(one & ~kComputed); unit != 0) visit(unit);
  });
}

template <typename Visit>
void Units::for_each_alarmed(ThreadId thread, UnitSet set, Visit visit) {
  if (set >= kSetBit) {
    Pair& both = pairs_[set & ~kSetBit];
    if (both.asked == alarms_of(thread)) return;
    both.asked = alarms_of(thread);
  }
  for_each_live(set, visit);
}

template <typename Visit>
void Units::for_each_element(UnitSet set, Visit visit) {
  if (set < kSetBit) {
    visit(set);
    return;
  }
  // `visit` may come back here through join or merge: the walk is kept above what is there.
  const std::size_t base = walk_.size();
  walk_.push_back(set);
  while (walk_.size() > base) {
    const UnitSet next = walk_.back();
    walk_.pop_back();
    if (next >= kSetBit) {
      const Pair& both = pairs_[next & ~kSetBit];
      walk_.push_back(both.left);
      walk_.push_back(both.right);
    } else {
      visit(next);
    }
  }
}

// Moves what is visited into fresh pools, in the order of the visits.
template <bool kMoveUnits>
struct Units::Renumbering {
  Units& old;
  Units fresh;
  std::vector<UnitId> units;
  std::vector<UnitSet> pairs;
  std::vector<Control> controls;

  explicit Renumbering(Units& from)
      : old(from),
        fresh(from.set_limit_, from.note_limit_),
        units(kMoveUnits ? from.words_.size() : 0, 0),
        pairs(from.pairs_.size(), kSetBit),
        controls(from.controls_.size(), 0) {}

  void unit(UnitId& id) {
    id = old.live(id);
    if (!kMoveUnits || id == 0) return;
    UnitId& moved = units[id];
    if (moved == 0) moved = static_cast<UnitId>(fresh.words_.push_back(old.words_[id]));
    id = moved;
  }
  void weak(UnitId& id) {
    id = old.live(id);
    if (!kMoveUnits || id == 0) return;
    id = units[id] == 0 ? kNobody : units[id];
  }
  void set(UnitSet& set) {
    if (set < kSetBit) {
      UnitId id = set & ~kComputed;
      unit(id);
      set = id == 0 ? 0 : id | (set & kComputed);
      return;
    }
    UnitSet& moved = pairs[set & ~kSetBit];
    if (moved == kSetBit) {
      Pair both = old.pairs_[set & ~kSetBit];
      this->set(both.left);
      this->set(both.right);
      if (both.left == both.right || both.right == 0) {
        moved = both.left;
      } else if (both.left == 0) {
        moved = both.right;
      } else {
        const std::uint32_t size = fresh.size_of(both.left) + fresh.size_of(both.right);
        moved = fresh.pair(both.left, both.right, size);
      }
    }
    set = moved;
  }
  void control(Control& control) {
    std::vector<Control> chain;
    for (Control at = control; at != 0 && controls[at] == 0; at = old.controls_[at].outer)
      chain.push_back(at);
    for (; !chain.empty(); chain.pop_back()) {
      ControlNode node = old.controls_[chain.back()];
      set(node.condition);
      node.outer = controls[node.outer];
      controls[chain.back()] = static_cast<Control>(fresh.controls_.push_back(node));
    }
    control = controls[control];
  }
};

template <typename VisitAll>
void Units::renumber(VisitAll visit_all) {
  Renumbering<true> renumbering(*this);
  renumbering.units[kNobody] = kNobody;
  visit_all(renumbering);
  for (const auto& [unit, list] : lists_) {
    if (const UnitId moved = renumbering.units[unit]; moved != 0) {
      renumbering.fresh.lists_.emplace(moved, list);
    } else {
      free_notes(list);
    }
  }
  renumbering.fresh.notes_ = std::move(notes_);
  renumbering.fresh.free_note_ = free_note_;
  renumbering.fresh.free_notes_ = free_notes_;
  renumbering.fresh.created_ = created_;
  renumbering.fresh.alarms_ = std::move(alarms_);
  renumbering.fresh.merge_alarms_ = merge_alarms_;
  *this = std::move(renumbering.fresh);
}

// Sets come and go by the million: the memory that they leave is used for the next ones, which
// saves the kernel the trouble of clearing it.
template <typename VisitAll>
void Units::renumber_sets(VisitAll visit_all) {
  Renumbering<false> renumbering(*this);
  Units& fresh = renumbering.fresh;
  fresh.pairs_ = std::move(spare_pairs_);
  fresh.controls_ = std::move(spare_controls_);
  fresh.forget_sets();
  visit_all(renumbering);
  spare_pairs_ = std::exchange(pairs_, std::move(fresh.pairs_));
  spare_controls_ = std::exchange(controls_, std::move(fresh.controls_));
  recent_pairs_ = fresh.recent_pairs_;
}

}  // namespace heddle::svd
