// Definitions 1–3 of svd-2005 and the strict 2PL check, written naively on explicit sets of arcs:
// the twin of offline.h. Definition 4 is in serializable.h. For tests.
#pragma once

#include "detect/svd/offline.h"
#include "flow/graph.h"

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace heddle::svd {

inline bool overlap(const FlowNode& a, const FlowNode& b) {
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

inline bool in_conflict(const FlowNode& a, const FlowNode& b) {
  return a.thread != b.thread && a.kind != EventKind::kBranch && b.kind != EventKind::kBranch &&
         overlap(a, b) && (is_write(a.kind) || is_write(b.kind));
}

class Definitions {
 public:
  using Arcs = std::set<std::pair<NodeId, NodeId>>;  // the later end first

  explicit Definitions(std::span<const FlowNode> all) : nodes_(all) {
    std::map<Address, std::set<ThreadId>> users;  // by byte
    for (const FlowNode& node : nodes_) {
      if (node.kind == EventKind::kBranch) continue;
      for (Address byte = node.address; byte < node.address + node.size; ++byte)
        users[byte].insert(node.thread);
    }
    const auto through_shared = [&](const FlowNode& reader, const FlowNode& writer) {
      for (Address byte = reader.address; byte < reader.address + reader.size; ++byte) {
        if (byte >= writer.address && byte < writer.address + writer.size && users[byte].size() > 1)
          return true;
      }
      return false;
    };
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      const FlowNode& node = nodes_[id];
      for (const NodeId to : node.data) plain_.insert({id, to});
      if (node.control != kNoNode) plain_.insert({id, node.control});
      for (const NodeId to : node.memory)
        (through_shared(node, nodes_[to]) ? shared_ : plain_).insert({id, to});
    }
    // Definition 2: the earliest shared arc first (arcs are ordered by their later end).
    for (const auto& shared : shared_) {
      const std::set<NodeId> near = connected(shared.second, shared.first);
      std::erase_if(plain_, [&](const auto& arc) {
        return arc.first >= shared.first && near.contains(arc.second);
      });
    }
  }

  std::set<NodeId> unit_of(NodeId node) const {
    return connected(node, static_cast<NodeId>(nodes_.size()));
  }

  std::vector<Conflict> conflicts() const {
    std::vector<Conflict> out;
    for (NodeId inside = 0; inside < nodes_.size(); ++inside) {
      if (nodes_[inside].kind == EventKind::kBranch) continue;
      const std::set<NodeId> unit = unit_of(inside);
      for (NodeId remote = inside + 1; remote < *unit.rbegin(); ++remote) {
        if (in_conflict(nodes_[inside], nodes_[remote])) out.push_back({inside, remote});
      }
    }
    return out;
  }

 private:
  // Everything weakly connected with `start` along plain arcs between statements before `before`.
  std::set<NodeId> connected(NodeId start, NodeId before) const {
    std::set<NodeId> reached{start};
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [later, earlier] : plain_) {
        if (later >= before || reached.contains(later) == reached.contains(earlier)) continue;
        reached.insert(later);
        reached.insert(earlier);
        grew = true;
      }
    }
    return reached;
  }

  std::span<const FlowNode> nodes_;
  Arcs plain_;   // control and local true dependences
  Arcs shared_;  // true dependences through shared variables
};

}  // namespace heddle::svd
