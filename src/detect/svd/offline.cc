#include "detect/svd/offline.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace heddle::svd {
namespace {

bool touches_memory(const FlowNode& node) {
  return node.kind != EventKind::kBranch;
}

// Bytes that more than one thread accesses.
class SharedBytes {
 public:
  explicit SharedBytes(std::span<const FlowNode> nodes) {
    std::unordered_map<Address, ThreadId> owner;
    for (const FlowNode& node : nodes) {
      if (!touches_memory(node)) continue;
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const auto [at, first] = owner.try_emplace(node.address + i, node.thread);
        if (!first && at->second != node.thread) shared_.insert(node.address + i);
      }
    }
  }

  // Whether a byte that `reader` read and `writer` wrote is shared.
  bool between(const FlowNode& reader, const FlowNode& writer) const {
    const Address begin = std::max(reader.address, writer.address);
    const Address end = std::min(reader.address + reader.size, writer.address + writer.size);
    for (Address byte = begin; byte < end; ++byte) {
      if (shared_.contains(byte)) return true;
    }
    return false;
  }

 private:
  std::unordered_set<Address> shared_;
};

// Groups of statements that grow by merging until they are cut.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count), active_(count, true) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  NodeId root(NodeId node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void cut(NodeId node) { active_[root(node)] = false; }
  void connect(NodeId later, NodeId earlier) {
    const NodeId from = root(earlier);
    if (active_[from]) parent_[from] = root(later);
  }

 private:
  std::vector<NodeId> parent_;
  std::vector<bool> active_;
};

bool conflicting(const FlowNode& a, const FlowNode& b) {
  if (!touches_memory(a) || !touches_memory(b) || a.thread == b.thread) return false;
  if (!is_write(a.kind) && !is_write(b.kind)) return false;
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

}  // namespace

OfflineResult offline(std::span<const FlowNode> nodes) {
  const SharedBytes shared(nodes);
  Groups groups(nodes.size());
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const FlowNode& node = nodes[id];
    // First every shared dependence cuts, then what is still active is connected.
    for (const NodeId writer : node.memory) {
      if (shared.between(node, nodes[writer])) groups.cut(writer);
    }
    for (const NodeId writer : node.memory) {
      if (!shared.between(node, nodes[writer])) groups.connect(id, writer);
    }
    for (const NodeId source : node.data) groups.connect(id, source);
    if (node.control != kNoNode) groups.connect(id, node.control);
  }

  OfflineResult result;
  result.unit_of.resize(nodes.size());
  std::unordered_map<NodeId, std::uint32_t> number;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const auto [at, is_new] =
        number.try_emplace(groups.root(id), static_cast<std::uint32_t>(result.units.size()));
    if (is_new) result.units.push_back({nodes[id].thread, {}});
    result.unit_of[id] = at->second;
    result.units[at->second].members.push_back(id);
  }

  // Strict 2PL: between a unit's access and the unit's end nobody else may conflict with it.
  for (const OfflineUnit& unit : result.units) {
    for (const NodeId inside : unit.members) {
      for (NodeId remote = inside + 1; remote < unit.members.back(); ++remote) {
        if (conflicting(nodes[inside], nodes[remote])) result.conflicts.push_back({inside, remote});
      }
    }
  }
  std::sort(result.conflicts.begin(), result.conflicts.end());
  return result;
}

}  // namespace heddle::svd
