// Computational units as the online algorithm keeps them: references that are propagated, merged
// and ended (svd-2005, section 4.2).
//
// A unit is a number; one word for each says that it is alive, has ended or has been merged, and
// into which. Which blocks belong to a unit is known by the blocks: a block whose unit has ended is
// Idle, so ending a unit touches nothing but the unit.
//
// Of a unit that ended because another thread accessed what it had read back last, registers keep
// what was computed in it (kComputed): a store may ask whether it loses the other thread's update
// (online.h).
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
// A unit keeps so many notes of overwritten inputs (notes.h) and no more: whoever reads about the
// first two hundred needs no others.
//
// Numbers are never re-used; renumber() forgets those that nothing refers to, so that memory
// follows what is live. It needs hardly any memory for itself: what is referred to is marked, a bit
// for each unit, and a unit's new number is how many are marked before it. A reference is weak if
// no value can get the unit through it: of a unit that has weak references only, nobody will ever
// ask anything but whether it is another one than some live unit. They all become references to one
// unit that stands for such: kNobody.
#pragma once

#include "detect/svd/notes.h"
#include "detect/svd/pool.h"
#include "trace/event.h"

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_set.h>

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
  // It will be asked for soon.
  [[gnu::always_inline]] void expect(UnitId id) const { __builtin_prefetch(&words_[id]); }
  // Whether it is a unit, alive and not merged into another.
  bool is_live_root(UnitId id) const { return is_live(words_[id]); }
  enum class Because { kOther, kReadBack };
  void end(UnitId id, Because because = Because::kOther);
  // What a unit has been merged into that ended because of what was read back; else 0.
  UnitId ended_read(UnitId id) {
    const UnitId unit = root(id);
    return words_[unit] == kEndedRead ? unit : 0;
  }
  // Whether a value of the set was computed in that unit.
  bool has_computed(UnitSet set, UnitId ended_read_unit);

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

  // The element with what its unit has been merged into; 0 when that has ended, and the element is
  // of no use any more.
  UnitSet updated(UnitSet one) {
    if (const UnitId unit = live(one & ~kComputed); unit != 0) return unit | (one & kComputed);
    if ((one & kComputed) == 0) return 0;
    const UnitId unit = ended_read(one & ~kComputed);
    return unit == 0 ? 0 : unit | kComputed;
  }

  // What is known of units, but for those that begin meanwhile.
  struct Knowledge {
    UnitId next{};            // the next to begin
    std::uint64_t merged{};   // how many have been
    std::uint64_t changes{};  // how often one ended, got notes or gave them away …
    std::uint64_t alarms{};   // … or was merged with one that had some
  };
  Knowledge knowledge() const {
    return {static_cast<UnitId>(words_.size()), merged_, changes_, merge_alarms_};
  }
  // If nothing has happened since but that units began, of which some were merged into older ones:
  // how many were not.
  std::optional<std::size_t> begun_alone(const Knowledge& before);
  // One that was merged, but has no number.
  void count_one_more() { ++created_; }
  // Whether so many more can begin.
  bool has_room_for(std::size_t more) const { return words_.size() + more < kMaxUnit; }

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
  bool noted(UnitId live_unit) const { return words_[live_unit] >= kNoted; }
  bool any_noted() const { return noted_units_ != 0; }
  // Calls take(overwrite) for each, the oldest first; then there are none.
  template <typename Take>
  void take_notes(UnitId live_unit, Take take);
  // Moves whenever a merge may have given a unit its first note. Whoever has taken the notes of the
  // merged unit may set it back.
  std::uint64_t merge_alarms() const { return merge_alarms_; }
  void set_merge_alarms(std::uint64_t alarms) { merge_alarms_ = alarms; }

  // ---- control ----
  Control control(ThreadId thread, SegmentId branch, UnitSet condition, Control outer) {
    const ControlNode& last = controls_[outer];
    if (last.branch == branch) {  // a loop's, usually, controlled by its own last execution
      if (last.condition == condition) return outer;
      outer = last.outer;
    } else if ((last.branches & bit_of(branch)) != 0 && last.absent != branch) {
      outer = without(branch, outer);
    }
    if (condition == 0) return outer;
    // What is calm now need not be asked later.
    const bool calm = any_noted() && is_calm(thread, outer) && is_calm_set(thread, condition);
    return add_control(branch, condition, outer, calm ? alarms_of(thread) : kNotAsked);
  }
  template <typename Visit>  // visit(condition)
  void for_each_condition(Control control, Visit visit) const {
    for (; control != 0; control = controls_[control].outer) visit(controls_[control].condition);
  }
  // Whether no unit of a condition can have got notes since this was last asked.
  bool is_calm(ThreadId thread, Control control) const {
    return controls_[control].asked == alarms_of(thread) || control == 0;
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
  // How many numbers are taken.
  std::size_t taken() const { return words_.size(); }
  std::size_t unit_bytes() const { return words_.size() * sizeof(Word) + notes_.bytes(); }
  std::size_t set_bytes() const {
    return pairs_.size() * sizeof(Pair) + controls_.size() * sizeof(ControlNode);
  }

  // Renumbers: `visit_all(f)` must call f on every number that is kept anywhere (f.unit(UnitId&),
  // f.set(UnitSet&), f.control(Control&), f.weak(UnitId&)), twice the same; the rest is forgotten.
  // f.expect(UnitId) says that a unit will be visited soon. Once all sets have been visited,
  // f.is_held(UnitId&) says whether one of them has a value that was computed in the unit, and
  // stands for a visit if so.
  template <typename VisitAll>
  void renumber(VisitAll visit_all);

  // The same for sets and controls only; units keep their numbers and need no visit.
  template <typename VisitAll>
  void renumber_sets(VisitAll visit_all);

 private:
  struct Marked;
  struct Marking;
  struct Renumbering;

  // 0: a live root; from kNoted on: the same, with these notes; kEnded, kEndedRead: a root that has
  // ended; else the parent.
  using Word = std::uint32_t;
  static constexpr Word kNoted = 0x80000000u;
  static constexpr Word kEnded = kNoted - 1;
  static constexpr Word kEndedRead = kNoted - 2;
  static_assert(kMaxUnit < kEndedRead);
  static bool is_live(Word word) { return static_cast<std::int32_t>(word) <= 0; }
  static bool is_root(Word word) { return is_live(word) || word >= kEndedRead; }

  static constexpr std::size_t kRecentPairs = 256;
  static std::size_t recent_place(UnitSet a, UnitSet b) {
    return (a * 0x9e3779b1u ^ b * 0x85ebca6bu) >> 24;
  }

  static constexpr std::uint64_t kNotAsked = ~0ull;
  struct Pair {
    UnitSet left{};
    UnitSet right{};
    std::uint32_t size{};             // an upper bound on the number of units
    UnitSet computed{};               // kComputed if an element has it
    std::uint64_t asked = kNotAsked;  // alarms when no unit of it had notes
  };
  struct ControlNode {
    SegmentId branch{};
    UnitSet condition{};
    Control outer{};
    SegmentId absent{};               // a branch that was looked for in the list and is not there
    std::uint64_t asked = kNotAsked;  // alarms when neither it nor an outer one had notes
    std::uint64_t branches{};         // a bit for each branch of the list, several to a bit
  };
  // Calls visit(one unit, with or without kComputed) for every element, dead ones included.
  template <typename Visit>
  void for_each_element(UnitSet set, Visit visit);
  std::uint64_t alarms_of(ThreadId thread) const {
    return merge_alarms_ + (thread < alarms_.size() ? alarms_[thread] : 0);
  }
  static std::uint64_t bit_of(SegmentId branch) { return 1ull << (branch & 63); }
  Control add_control(SegmentId branch, UnitSet condition, Control outer, std::uint64_t asked) {
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
  void free_notes(UnitId live_unit);
  void begin(Renumbering& renumbering);
  void finish(Renumbering& renumbering);
  void move_words(const Marked& marked);

  std::uint32_t set_limit_;
  Pool<Word> words_;  // by unit
  Pool<Pair> pairs_;
  std::array<UnitSet, kRecentPairs> recent_pairs_{};  // by a hash of their halves; or 0
  Pool<ControlNode> controls_;
  Pool<Pair> spare_pairs_;  // memory for the next renumbering
  Pool<ControlNode> spare_controls_;
  Notes notes_;
  std::size_t noted_units_ = 0;
  std::vector<UnitSet> walk_;  // scratch of for_each_live
  std::vector<Control> kept_;  // scratch of without
  std::size_t created_ = 0;
  std::vector<std::uint64_t> alarms_;  // by thread: how often one of its units got a note
  std::uint64_t merge_alarms_ = 0;
  std::uint64_t merged_ = 0;
  std::uint64_t changes_ = 0;  // see Knowledge
};

inline UnitId Units::live(UnitId id) {
  const Word word = words_[id];  // of 0 it says that it has ended
  if (is_live(word)) return id;
  if (word >= kEndedRead) return 0;
  return is_live(words_[word]) ? word : live_slowly(id);  // most have been merged once
}

inline UnitId Units::merge(UnitId a, UnitId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (a > b) std::swap(a, b);  // the older one stays: chains of merges stay short
  if ((words_[a] | words_[b]) != 0) move_notes(a, b);
  words_[b] = a;
  ++merged_;
  return a;
}

template <typename Take>
void Units::take_notes(UnitId id, Take take) {
  if (!noted(id)) return;
  notes_.for_each(words_[id] & ~kNoted, take);
  free_notes(id);
  ++changes_;
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

// The units that something refers to.
struct Units::Marked {
  // Of 128 units.
  struct Group {
    std::array<std::uint32_t, 4> bits{};
    std::uint32_t before = 0;
  };
  std::vector<Group> groups;
  absl::flat_hash_set<UnitId> computed;  // those of which a set has computed values

  explicit Marked(std::size_t count) : groups(count / 128 + 1) {}
  void add(UnitId id) { groups[id / 128].bits[id / 32 % 4] |= 1u << id % 32; }
  bool has(UnitId id) const { return (groups[id / 128].bits[id / 32 % 4] >> id % 32 & 1) != 0; }
  // Once all are there.
  void count() {
    std::uint32_t sum = 0;
    for (Group& group : groups) {
      group.before = sum;
      for (const std::uint32_t bits : group.bits) sum += count_bits(bits);
    }
  }
  UnitId number(UnitId id) const {
    const Group& group = groups[id / 128];
    const std::size_t last = id / 32 % 4;
    UnitId out = group.before + count_bits(group.bits[last] & ((1u << id % 32) - 1));
    for (std::size_t i = 0; i < last; ++i) out += count_bits(group.bits[i]);
    return out;
  }
  // Without an instruction that not all processors have, compilers call a function.
  static std::uint32_t count_bits(std::uint32_t bits) {
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
  }
};

struct Units::Marking {
  Units& units;
  Marked& marked;
  std::vector<bool> pairs = std::vector<bool>(units.pairs_.size());
  std::vector<bool> controls = std::vector<bool>(units.controls_.size());

  void unit(UnitId& id) {
    id = units.live(id);
    if (id != 0) marked.add(id);
  }
  void weak(UnitId& id) { id = units.live(id); }
  bool is_held(UnitId& id) {
    id = units.root(id);
    return marked.computed.contains(id);
  }
  [[gnu::always_inline]] void expect(UnitId id) const {
    __builtin_prefetch(&units.words_[id]);
    __builtin_prefetch(&marked.groups[id / 128]);
  }
  void set(UnitSet set) {
    if (set < kSetBit) {
      set = units.updated(set);
      if (set == 0) return;
      marked.add(set & ~kComputed);
      if ((set & kComputed) != 0) marked.computed.insert(set & ~kComputed);
      return;
    }
    if (pairs[set & ~kSetBit]) return;
    pairs[set & ~kSetBit] = true;
    const Pair both = units.pairs_[set & ~kSetBit];
    this->set(both.left);
    this->set(both.right);
  }
  void control(Control at) {
    for (; at != 0 && !controls[at]; at = units.controls_[at].outer) {
      controls[at] = true;
      set(units.controls_[at].condition);
    }
  }
};

// Moves the sets and controls that are visited into fresh pools, in the order of the visits.
struct Units::Renumbering {
  Units& old;
  const Marked* marked;  // nullptr: units keep their numbers
  Units fresh = Units(old.set_limit_);
  std::vector<UnitSet> pairs = std::vector<UnitSet>(old.pairs_.size(), kSetBit);
  std::vector<Control> controls = std::vector<Control>(old.controls_.size(), 0);

  // What is visited by itself has been found alive by the marking.
  void unit(UnitId& id) { id = marked->number(id); }
  void weak(UnitId& id) { id = marked->has(id) ? marked->number(id) : kNobody; }
  bool is_held(UnitId& id) {
    unit(id);
    return true;
  }
  [[gnu::always_inline]] void expect(UnitId id) const {
    __builtin_prefetch(&marked->groups[id / 128]);
  }
  void set(UnitSet& set) {
    if (set < kSetBit) {
      set = old.updated(set);
      UnitId id = set & ~kComputed;
      if (marked != nullptr) unit(id);
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
  Marked marked(words_.size());
  marked.add(0);  // which is none, and stays it
  marked.add(kNobody);
  Marking marking{*this, marked};
  visit_all(marking);
  marked.count();
  Renumbering renumbering{*this, &marked};
  begin(renumbering);
  visit_all(renumbering);
  finish(renumbering);
  move_words(marked);
}

template <typename VisitAll>
void Units::renumber_sets(VisitAll visit_all) {
  Renumbering renumbering{*this, nullptr};
  begin(renumbering);
  visit_all(renumbering);
  finish(renumbering);
}

}  // namespace heddle::svd
