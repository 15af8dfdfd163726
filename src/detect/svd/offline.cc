#include "detect/svd/offline.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {
namespace {

// Of a longer range the first part counts, as in the graph.
constexpr std::uint32_t kMaxTrackedBytes = 1u << 16;
constexpr Address kGranule = 8;

bool touches_memory(const FlowNode& node) {
  return is_access(node.kind);
}

Address end_of(const FlowNode& node) {
  return node.address + std::min(node.size, kMaxTrackedBytes);
}

// Bytes that more than one thread accesses.
class SharedBytes {
 public:
  explicit SharedBytes(std::span<const FlowNode> nodes) {
    for (const FlowNode& node : nodes) {
      if (!touches_memory(node)) continue;
      for (Address byte = node.address; byte < end_of(node); ++byte) {
        const auto [at, first] = owner_.try_emplace(byte, node.thread);
        if (!first && at->second != node.thread) at->second = kSeveral;
      }
    }
  }

  // Whether a byte that `reader` read and `writer` wrote is shared.
  bool between(const FlowNode& reader, const FlowNode& writer) const {
    const Address begin = std::max(reader.address, writer.address);
    const Address end = std::min(end_of(reader), end_of(writer));
    for (Address byte = begin; byte < end; ++byte) {
      const auto at = owner_.find(byte);
      if (at != owner_.end() && at->second == kSeveral) return true;
    }
    return false;
  }

 private:
  static constexpr ThreadId kSeveral = 0xffffffffu;
  absl::flat_hash_map<Address, ThreadId> owner_;
};

// Groups of statements that grow by merging until they are cut.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count), cut_by_(count, kNoNode), cut_at_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  NodeId root(NodeId node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void cut(NodeId written, NodeId read_back) {
    const NodeId group = root(written);
    if (cut_by_[group] != kNoNode) return;
    cut_by_[group] = read_back;
    cut_at_[group] = written;
  }
  void connect(NodeId later, NodeId earlier) {
    const NodeId from = root(earlier);
    if (cut_by_[from] == kNoNode) parent_[from] = root(later);
  }
  NodeId cut_by(NodeId group) const { return cut_by_[group]; }
  NodeId cut_at(NodeId group) const { return cut_at_[group]; }

 private:
  std::vector<NodeId> parent_;
  std::vector<NodeId> cut_by_;  // of roots; kNoNode: still growing
  std::vector<NodeId> cut_at_;
};

bool conflicting(const FlowNode& a, const FlowNode& b) {
  if (a.thread == b.thread || (!is_write(a.kind) && !is_write(b.kind))) return false;
  return a.address < end_of(b) && b.address < end_of(a);
}

// Strict 2PL: between a unit's access and the unit's end nobody else may conflict with it.
void find_conflicts(std::span<const FlowNode> nodes, std::size_t limit, OfflineResult& result) {
  absl::flat_hash_map<Address, std::vector<NodeId>> by_granule;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (!touches_memory(nodes[id]) || nodes[id].size == 0) continue;
    for (Address g = nodes[id].address / kGranule; g <= (end_of(nodes[id]) - 1) / kGranule; ++g)
      by_granule[g].push_back(id);
  }
  std::vector<NodeId> found;
  for (const OfflineUnit& unit : result.units) {
    for (const NodeId inside : unit.members) {
      const FlowNode& node = nodes[inside];
      if (!touches_memory(node) || node.size == 0) continue;
      found.clear();
      for (Address g = node.address / kGranule; g <= (end_of(node) - 1) / kGranule; ++g) {
        const std::vector<NodeId>& users = by_granule[g];
        std::size_t count = 0;
        for (auto at = std::upper_bound(users.begin(), users.end(), inside);
             at != users.end() && *at < unit.members.back() && count < limit; ++at) {
          if (!conflicting(node, nodes[*at])) continue;
          found.push_back(*at);
          ++count;
        }
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      if (found.size() > limit) found.resize(limit);
      for (const NodeId remote : found) result.conflicts.push_back({inside, remote});
    }
  }
  std::sort(result.conflicts.begin(), result.conflicts.end());
}

}  // namespace

OfflineResult offline(std::span<const FlowNode> nodes, std::size_t conflicts_of_each) {
  const SharedBytes shared(nodes);
  Groups groups(nodes.size());
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const FlowNode& node = nodes[id];
    // First every shared dependence cuts, then what is still active is connected.
    for (const NodeId writer : node.memory) {
      if (shared.between(node, nodes[writer])) groups.cut(writer, id);
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
    const NodeId group = groups.root(id);
    const auto [at, is_new] =
        number.try_emplace(group, static_cast<std::uint32_t>(result.units.size()));
    if (is_new) {
      result.units.push_back({nodes[id].thread, {}, groups.cut_by(group), groups.cut_at(group)});
    }
    result.unit_of[id] = at->second;
    result.units[at->second].members.push_back(id);
  }
  find_conflicts(nodes, conflicts_of_each, result);
  return result;
}

}  // namespace heddle::svd
