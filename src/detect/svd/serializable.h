// Definition 4 of svd-2005, written naively: units are serializable iff there is an equivalent
// trace in which the statements of each unit are adjacent; traces are equivalent if their
// statements depend on the same statements (section 3.1: true, control and conflict dependences).
// For tests.
//
// Every order of the units is tried until one is equivalent, statement by statement: an order whose
// beginning has a statement that would depend on others than it did is given up there. Values in
// registers have no location that somebody else could write, so of a register it is asked only that
// what defined it comes earlier. A unit that can come next, and that touches nothing that the rest
// touches too, may as well come next; otherwise independent units would be tried in all their
// orders.
#pragma once

#include "detect/svd/definitions.h"
#include "detect/svd/offline.h"
#include "flow/graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace heddle::svd {

class Serializability {
 public:
  Serializability(std::span<const FlowNode> nodes, const std::vector<OfflineUnit>& units)
      : nodes_(nodes), placed_(nodes.size(), false) {
    for (NodeId id = 0; id < nodes_.size(); ++id) original_.push_back(take(id, memory_));
    memory_.clear();
    for (const OfflineUnit& unit : units)
      units_.emplace_back(unit.members.begin(), unit.members.end());
  }

  bool holds() { return place_rest(0); }

 private:
  // What a byte of memory knows of the statements so far.
  struct Byte {
    NodeId writer = kNoNode;
    std::map<ThreadId, NodeId> writers;  // the last one of each thread
    std::set<NodeId> readers;            // since the last write
    auto operator<=>(const Byte&) const = default;
  };
  using Memory = std::map<Address, Byte>;
  using Arcs = std::set<NodeId>;

  // Executes the statement and returns what it depends on through memory.
  Arcs take(NodeId id, Memory& memory) const {
    const FlowNode& node = nodes_[id];
    Arcs out;
    if (node.kind == EventKind::kBranch) return out;
    const auto conflict = [&](NodeId other) {
      if (other != kNoNode && nodes_[other].thread != node.thread) out.insert(other);
    };
    for (Address at = node.address; at < node.address + node.size; ++at) {
      Byte& byte = memory[at];
      conflict(byte.writer);
      if (is_read(node.kind)) {
        if (const auto own = byte.writers.find(node.thread); own != byte.writers.end())
          out.insert(own->second);
      }
      if (is_write(node.kind)) {
        for (const NodeId reader : byte.readers) conflict(reader);
        byte.readers.clear();
        byte.writer = byte.writers[node.thread] = id;
      } else {
        byte.readers.insert(id);
      }
    }
    return out;
  }

  bool is_due(NodeId id) const {
    const FlowNode& node = nodes_[id];
    const auto placed = [&](NodeId source) { return source == kNoNode || placed_[source]; };
    return placed(node.control) && std::all_of(node.data.begin(), node.data.end(), placed) &&
           std::all_of(node.address_of.begin(), node.address_of.end(), placed);
  }

  bool place(const std::vector<NodeId>& unit, Memory& memory) {
    for (const NodeId id : unit) {
      if (!is_due(id) || take(id, memory) != original_[id]) return false;
      placed_[id] = true;
    }
    return true;
  }

  // Of the statements that are still to be placed, nobody else's cares when the unit's happen.
  bool is_apart(const std::vector<NodeId>& unit) const {
    for (NodeId other = 0; other < nodes_.size(); ++other) {
      if (placed_[other] || nodes_[other].kind == EventKind::kBranch) continue;
      for (const NodeId id : unit) {
        const bool writes = is_write(nodes_[id].kind) || is_write(nodes_[other].kind);
        if (nodes_[id].kind != EventKind::kBranch && writes && overlap(nodes_[id], nodes_[other]))
          return false;
      }
    }
    return true;
  }

  bool place_rest(std::size_t count) {
    if (count == units_.size()) return true;
    if (!tried_.emplace(placed_, memory_).second) return false;
    for (const std::vector<NodeId>& unit : units_) {
      if (placed_[unit.front()]) continue;
      const Memory before = memory_;
      if (place(unit, memory_)) {
        const bool rest = place_rest(count + 1);
        if (rest || is_apart(unit)) return rest;
      }
      memory_ = before;
      for (const NodeId id : unit) placed_[id] = false;
    }
    return false;
  }

  std::span<const FlowNode> nodes_;
  std::vector<std::vector<NodeId>> units_;  // their statements, in the order of the trace
  std::vector<Arcs> original_;              // by statement
  std::vector<bool> placed_;
  Memory memory_;
  std::set<std::pair<std::vector<bool>, Memory>> tried_;
};

// Whether a thread works on one unit after the other (what section 3.3 takes for granted).
inline bool one_after_the_other(std::span<const FlowNode> nodes, const OfflineResult& result) {
  std::map<ThreadId, std::uint32_t> current;
  std::set<std::uint32_t> left;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const std::uint32_t unit = result.unit_of[id];
    const auto [at, is_new] = current.try_emplace(nodes[id].thread, unit);
    if (at->second != unit) left.insert(std::exchange(at->second, unit));
    if (left.contains(unit)) return false;
  }
  return true;
}

}  // namespace heddle::svd
