// SVD, offline: computational units by definition, and the strict two-phase-locking check on them.
//
// Problem. Which stretches of a thread were meant to be atomic? Nobody said so, and the locks may
// be what is wrong. svd-2005 infers them: a *computational unit* is a group of statements that are
// connected by data and control dependences, cut where a shared variable is read back after the
// unit wrote it (the region hypothesis, section 2.1).
//
// Paper. Sections 3.2 (Definitions 1–3), 3.3 (strict 2PL), 4.1 (figures 5 and 6).
//
// The arcs of the dependence graph run from the later statement to the one it depends on. A true
// dependence is *shared* when it goes through a location that more than one thread accesses in the
// trace, else local. A statement s that reads back a shared location written by w cuts: from then
// on nothing connects to the unit of w, as it stood before s.
//
// Where we differ, because the definition wins over the figure:
//   - Definition 1 (I) reads "y → b". With the names of the definition that would cut arcs *before*
//   the
//     shared read; figure 4, its explanation and the sentence after Definition 2 all say *after*:
//     b → y. So it is read here.
//   - Definition 1 (II), "x and a are weakly connected", is meant along arcs between statements
//   that
//     precede b. Otherwise everything after b that hangs on the old unit would be torn to single
//     statements, which figure 5 does not do.
//   - Figure 5, lines 4–8, ends the unit of any predecessor that ever wrote v. The shared arc goes
//   to
//     the last writer only; the others stay.
//   - Figure 6, line 15, compares a statement with itself (st.leftValue in st.rightValues). It must
//   be
//     st.leftValue in s.rightValues: the other thread reads what the unit wrote.
//
// Invariant: after each statement, two statements have the same active unit iff they are connected
// in the reduced graph of the prefix.
#pragma once

#include "flow/graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::svd {

struct OfflineUnit {
  ThreadId thread{};
  std::vector<NodeId> members;  // in execution order
  // Why it ended: `cut_by` read back a shared location that the member `cut_at` had written.
  // kNoNode: it grew until the thread's end.
  NodeId cut_by = kNoNode;
  NodeId cut_at = kNoNode;
};

struct Conflict {
  NodeId inside{};  // a statement of the unit
  NodeId remote{};  // the other thread's, after `inside` and before the unit's last statement
  bool operator==(const Conflict&) const = default;
  auto operator<=>(const Conflict&) const = default;
};

struct OfflineResult {
  std::vector<std::uint32_t> unit_of;  // by node
  std::vector<OfflineUnit> units;
  std::vector<Conflict> conflicts;  // sorted
};

// At most `conflicts_of_each` conflicts of every access, the earliest.
OfflineResult offline(std::span<const FlowNode> nodes, std::size_t conflicts_of_each = ~0ull);

}  // namespace heddle::svd
