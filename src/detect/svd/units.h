// Computational units as the online algorithm keeps them: references that are propagated, merged
// and ended (svd-2005, section 4.2).
//
// A reference is a small number. A register holds a *set* of references (UnitSet): empty, one unit,
// or an interned set. Sets are merged into one unit only at a store (figure 7, line 20); up to then
// a sum of two loads refers to both of their units. A set that outgrows kMergeAbove is merged at
// once: its units are connected through one value, so the definition puts them together anyway, and
// a reduction over an array would otherwise carry a set as long as the array.
//
// An ended unit is remembered as "ended" while something may still refer to it; renumber() forgets
// those that nothing refers to, so that memory follows what is live.
#pragma once

#include "detect/witness.h"
#include "trace/event.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle::svd {

using UnitId = std::uint32_t;   // 0 = none
using UnitSet = std::uint32_t;  // 0 = empty; below kSetBit: that one unit; else an interned set
using BlockNumber = std::uint64_t;

inline constexpr std::uint32_t kSetBit = 0x80000000u;

// One access as it is kept for every block: 24 bytes, because there are as many as blocks in use.
struct Moment {
  EventOrdinal ordinal{};
  SiteId site{};
  StackId stack{};
  LockSetId locks{};
  EventKind kind{};
};

// Between a unit's access of a block (`inside`) and now, another thread has accessed it.
struct Overwrite {
  Moment inside;
  Witness remote;
};

struct Unit {
  UnitId merged_into = 0;
  ThreadId thread{};
  bool ended = false;
  std::vector<BlockNumber> blocks;    // read or written; may repeat
  std::vector<Overwrite> overwrites;  // of its inputs
};

class Units {
 public:
  static constexpr std::size_t kMergeAbove = 32;

  Units() : units_(1), sets_(1) {}

  UnitId create(ThreadId thread);
  UnitId root(UnitId id);
  Unit& at(UnitId root) { return units_[root]; }
  bool live(UnitId id) { return id != 0 && !units_[root(id)].ended; }

  UnitSet join(UnitSet a, UnitSet b);

  // Makes one unit of all live ones of the set; 0 when there is none.
  UnitId merge(UnitSet set);
  UnitId merge(UnitId a, UnitId b);

  // The unit grows no further. Its blocks are handed back so that their state can be reset.
  std::vector<BlockNumber> end(UnitId id);

  template <typename Visit>
  void for_each_live(UnitSet set, Visit visit) {
    if ((set & kSetBit) == 0) {
      if (live(set)) visit(root(set));
      return;
    }
    for (const UnitId id : sets_[set & ~kSetBit]) {
      if (live(id)) visit(root(id));
    }
  }

  std::size_t created() const { return created_; }
  std::size_t records() const { return units_.size() + sets_.size() + joined_.size(); }

  // Renumbers: `visit_all(f)` must call f on every UnitId and UnitSet that is kept anywhere
  // (f.unit(UnitId&), f.set(UnitSet&)); units that were not visited are forgotten.
  template <typename VisitAll>
  void renumber(VisitAll visit_all);

 private:
  UnitSet intern(std::vector<UnitId> ids);

  std::vector<Unit> units_;
  std::vector<std::vector<UnitId>> sets_;              // sorted roots at the time of interning
  std::unordered_map<std::uint64_t, UnitSet> joined_;  // memo of join
  std::unordered_map<std::uint64_t, std::vector<UnitSet>> by_hash_;
  std::size_t created_ = 0;
};

template <typename VisitAll>
void Units::renumber(VisitAll visit_all) {
  struct Renumbering {
    Units& old;
    Units fresh;
    std::vector<UnitId> moved;

    void unit(UnitId& id) {
      if (id == 0) return;
      const UnitId root = old.root(id);
      if (old.units_[root].ended) {
        id = 0;
        return;
      }
      if (moved[root] == 0) {
        fresh.units_.push_back(std::move(old.units_[root]));
        moved[root] = static_cast<UnitId>(fresh.units_.size() - 1);
      }
      id = moved[root];
    }
    void set(UnitSet& set) {
      if ((set & kSetBit) == 0) {
        unit(set);
        return;
      }
      std::vector<UnitId> ids = old.sets_[set & ~kSetBit];
      for (UnitId& id : ids) unit(id);
      set = fresh.intern(std::move(ids));
    }
  };
  Renumbering renumbering{*this, Units(), std::vector<UnitId>(units_.size(), 0)};
  visit_all(renumbering);
  renumbering.fresh.created_ = created_;
  *this = std::move(renumbering.fresh);
}

}  // namespace heddle::svd
