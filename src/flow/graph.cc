#include "flow/graph.h"

#include "base/check.h"

#include <algorithm>
#include <iterator>

namespace heddle {
namespace {

// A range of hostile length must not cost a step per byte for ever.
constexpr std::uint32_t kMaxTrackedBytes = 1u << 16;

std::uint32_t tracked_bytes(const FlowNode& node) {
  return std::min(node.size, kMaxTrackedBytes);
}

}  // namespace

FlowGraph::FlowGraph(const Catalog& catalog) : machine_(catalog, *this), sets_(1) {
  tags_[{}] = 0;
}

void FlowGraph::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) machine_.on(event, first++);
}

FlowGraph::Tag FlowGraph::set_of(std::vector<NodeId> nodes) {
  const auto [at, is_new] = tags_.try_emplace(nodes, static_cast<Tag>(sets_.size()));
  if (is_new) sets_.push_back(std::move(nodes));
  return at->second;
}

FlowGraph::Tag FlowGraph::join(ThreadId /*thread*/, Tag a, Tag b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  std::vector<NodeId> both;
  std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                 std::back_inserter(both));
  return set_of(std::move(both));
}

FlowNode& FlowGraph::add(const Event& event, EventOrdinal ordinal, Tag data, Tag address,
                         Tag control) {
  FlowNode& node = nodes_.emplace_back();
  node.kind = event.kind;
  node.thread = event.thread;
  node.ordinal = ordinal;
  node.site = event.site;
  node.address = event.address;
  node.size = event.size;
  node.data = sets_[data];
  node.address_of = sets_[address];
  if (control != 0) {
    HEDDLE_CHECK(sets_[control].size() == 1);  // branch() returns the branch itself
    node.control = sets_[control][0];
  }
  return node;
}

void FlowGraph::find_writers(FlowNode& node) {
  if (node.thread >= last_writer_.size()) return;
  const auto& writers = last_writer_[node.thread];
  for (std::uint32_t i = 0; i < tracked_bytes(node); ++i) {
    const auto at = writers.find(node.address + i);
    if (at != writers.end()) node.memory.push_back(at->second);
  }
  std::sort(node.memory.begin(), node.memory.end());
  node.memory.erase(std::unique(node.memory.begin(), node.memory.end()), node.memory.end());
}

void FlowGraph::note_write(const FlowNode& node, NodeId id) {
  if (node.thread >= last_writer_.size()) last_writer_.resize(node.thread + 1);
  for (std::uint32_t i = 0; i < tracked_bytes(node); ++i)
    last_writer_[node.thread][node.address + i] = id;
}

FlowGraph::Tag FlowGraph::load(const Event& event, EventOrdinal ordinal, Tag address, Tag control) {
  find_writers(add(event, ordinal, 0, address, control));
  return set_of({static_cast<NodeId>(nodes_.size() - 1)});
}

void FlowGraph::store(const Event& event, EventOrdinal ordinal, Tag data, Tag address,
                      Tag control) {
  const FlowNode& node = add(event, ordinal, data, address, control);
  note_write(node, static_cast<NodeId>(nodes_.size() - 1));
}

FlowGraph::Tag FlowGraph::update(const Event& event, EventOrdinal ordinal, Tag data, Tag address,
                                 Tag control) {
  FlowNode& node = add(event, ordinal, data, address, control);
  const auto id = static_cast<NodeId>(nodes_.size() - 1);
  find_writers(node);
  note_write(node, id);
  return set_of({id});
}

FlowGraph::Tag FlowGraph::branch(ThreadId thread, EventOrdinal ordinal, SegmentId segment,
                                 Tag condition, Tag control) {
  Event event;
  event.kind = EventKind::kBranch;
  event.thread = thread;
  add(event, ordinal, condition, 0, control).segment = segment;
  return set_of({static_cast<NodeId>(nodes_.size() - 1)});
}

}  // namespace heddle
