// Serialisability by the definition, for tests: the graph over all transactions, searched anew at
// every event.
#pragma once

#include "order/random_run.h"

#include <algorithm>
#include <set>
#include <vector>

namespace heddle::serializability {

struct ConflictGraph {
  std::vector<int> transaction;                // by event: its number, -1 for events that count not
  std::vector<testing::EventMask> successors;  // by transaction
  std::set<std::size_t> closing;               // events that close a cycle
};

inline bool counts(const Event& event) {
  switch (event.kind) {
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kRmw:
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
      return true;
    case EventKind::kAcquire:
    case EventKind::kRelease:
      return event.outcome == OpOutcome::kOk;
    default:
      return false;
  }
}

inline bool is_lock(const Event& event) {
  return event.kind == EventKind::kAcquire || event.kind == EventKind::kRelease;
}

inline bool changes(const Event& event) {
  return is_lock(event) ? event.mode == LockMode::kExclusive : is_write(event.kind);
}

// Both touch `byte`: of memory, or of a lock.
inline bool touches(const Event& event, Address byte) {
  if (is_lock(event)) return event.address == byte;
  return is_access(event.kind) && byte - event.address < event.size;
}

inline bool conflicts(const Event& a, const Event& b) {
  if (is_lock(a) != is_lock(b) || !(changes(a) || changes(b))) return false;
  if (is_lock(a)) return a.address == b.address;
  return is_access(a.kind) && is_access(b.kind) && a.address < b.address + b.size &&
         b.address < a.address + a.size;
}

inline bool ordered_directly(const Event& a, const Event& b) {
  return a.thread == b.thread || conflicts(a, b) ||
         (a.kind == EventKind::kFork && a.value == b.thread) ||
         (b.kind == EventKind::kJoin && b.value == a.thread);
}

// The events of other threads that `j` is ordered after without another in between: for each byte
// the latest write, and for a writer the reads since; for a join the last event of the child.
inline std::vector<std::size_t> immediately_before(const std::vector<Event>& events,
                                                   std::size_t j) {
  std::vector<std::size_t> out;
  const Event& now = events[j];
  const auto add = [&](std::size_t i) {
    if (events[i].thread != now.thread) out.push_back(i);
  };
  if (now.kind == EventKind::kJoin) {
    for (std::size_t i = j; i-- > 0;) {
      if (counts(events[i]) && events[i].thread == now.value) {
        add(i);
        break;
      }
    }
  }
  const Address size = is_lock(now) ? 1 : now.size;
  for (Address byte = now.address; byte < now.address + size; ++byte) {
    for (std::size_t i = j; i-- > 0;) {
      if (!counts(events[i]) || !touches(events[i], byte)) continue;
      if (changes(events[i])) {
        add(i);
        break;
      }
      if (changes(now)) add(i);
    }
  }
  return out;
}

inline bool reaches(const ConflictGraph& graph, int from, int to) {
  testing::EventMask seen = 0;
  testing::EventMask open = testing::EventMask{1} << from;
  while (open != 0) {
    seen |= open;
    testing::EventMask next = 0;
    for (int t = 0; t < 64; ++t) {
      if (open >> t & 1) next |= graph.successors[static_cast<std::size_t>(t)];
    }
    open = next & ~seen;
  }
  return seen >> to & 1;
}

inline ConflictGraph graph_by_definition(const std::vector<Event>& events) {
  ConflictGraph graph;
  graph.transaction.assign(events.size(), -1);
  graph.successors.assign(64, 0);
  std::vector<int> depth(64);
  std::vector<int> running(64, -1);
  int next = 0;
  for (std::size_t j = 0; j < events.size(); ++j) {
    const Event& now = events[j];
    if (!counts(now)) continue;
    if (now.kind == EventKind::kUnitBegin && depth[now.thread]++ == 0) running[now.thread] = next++;
    const int mine = depth[now.thread] > 0 ? running[now.thread] : next++;
    graph.transaction[j] = mine;
    if (now.kind == EventKind::kUnitEnd && depth[now.thread] > 0) --depth[now.thread];

    for (const std::size_t i : immediately_before(events, j)) {
      if (graph.transaction[i] != mine && reaches(graph, mine, graph.transaction[i])) {
        graph.closing.insert(j);
      }
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (graph.transaction[i] < 0 || graph.transaction[i] == mine) continue;
      if (ordered_directly(events[i], now)) {
        graph.successors[static_cast<std::size_t>(graph.transaction[i])] |= testing::EventMask{1}
                                                                            << mine;
      }
    }
  }
  return graph;
}

}  // namespace heddle::serializability
