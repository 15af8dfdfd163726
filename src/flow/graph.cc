#include "flow/graph.h"

#include <algorithm>
#include <iterator>

namespace heddle {
namespace {

// A range of hostile length must not cost a step per byte for ever.
constexpr std::uint32_t kMaxTrackedBytes = 1u << 16;

std::uint32_t tracked_bytes(const FlowNode& node) {
  return std::min(node.size, kMaxTrackedBytes);
}

void sort_unique(std::vector<NodeId>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

FlowGraph::FlowGraph(const Catalog& catalog) : machine_(catalog, *this), sets_(1) {}

void FlowGraph::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) machine_.on(event, first++);
}

FlowGraph::Tag FlowGraph::set_of(std::vector<NodeId> nodes) {
  const auto [at, is_new] = tags_.try_emplace(nodes, static_cast<Tag>(sets_.size()));
  if (is_new) sets_.push_back(std::move(nodes));
  return at->second;
}

FlowGraph::Tag FlowGraph::join(ThreadId thread, Tag a, Tag b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  std::vector<NodeId> both;
  std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                 std::back_inserter(both));
  if (both.size() <= kMaxSources) return set_of(std::move(both));
  FlowNode& value = nodes_.emplace_back();
  value.thread = thread;
  value.ordinal = nodes_[both.back()].ordinal;
  value.data = std::move(both);
  return set_of({static_cast<NodeId>(nodes_.size() - 1)});
}

std::vector<NodeId> FlowGraph::all_of(TagList<Tag> tags) const {
  std::vector<NodeId> out;
  for (std::uint32_t i = 0; i < tags.size(); ++i)
    out.insert(out.end(), sets_[tags[i]].begin(), sets_[tags[i]].end());
  sort_unique(out);
  return out;
}

FlowNode& FlowGraph::add(const Event& event, EventOrdinal ordinal, TagList<Tag> data,
                         TagList<Tag> address, Control control) {
  FlowNode& node = nodes_.emplace_back();
  node.kind = event.kind;
  node.thread = event.thread;
  node.ordinal = ordinal;
  node.site = event.site;
  node.address = event.address;
  node.size = event.size;
  node.data = all_of(data);
  node.address_of = all_of(address);
  if (control != 0) node.control = control - 1;
  return node;
}

void FlowGraph::find_writers(FlowNode& node) {
  for (std::uint32_t i = 0; i < tracked_bytes(node); ++i) {
    const auto at = last_writer_.find({node.thread, node.address + i});
    if (at == last_writer_.end()) continue;
    if (node.memory.empty() || node.memory.back() != at->second) node.memory.push_back(at->second);
  }
  sort_unique(node.memory);
}

void FlowGraph::note_write(const FlowNode& node, NodeId id) {
  for (std::uint32_t i = 0; i < tracked_bytes(node); ++i)
    last_writer_[{node.thread, node.address + i}] = id;
}

FlowGraph::Tag FlowGraph::load(const Event& event, EventOrdinal ordinal, TagList<Tag> address,
                               Control control) {
  find_writers(add(event, ordinal, {}, address, control));
  return set_of({static_cast<NodeId>(nodes_.size() - 1)});
}

void FlowGraph::store(const Event& event, EventOrdinal ordinal, TagList<Tag> data,
                      TagList<Tag> address, Control control) {
  const FlowNode& node = add(event, ordinal, data, address, control);
  note_write(node, static_cast<NodeId>(nodes_.size() - 1));
}

FlowGraph::Tag FlowGraph::update(const Event& event, EventOrdinal ordinal, TagList<Tag> data,
                                 TagList<Tag> address, Control control) {
  FlowNode& node = add(event, ordinal, data, address, control);
  const auto id = static_cast<NodeId>(nodes_.size() - 1);
  find_writers(node);
  note_write(node, id);
  return set_of({id});
}

FlowGraph::Control FlowGraph::branch(ThreadId thread, EventOrdinal ordinal, SegmentId segment,
                                     Tag condition, Control control) {
  FlowNode& node = nodes_.emplace_back();
  node.kind = EventKind::kBranch;
  node.thread = thread;
  node.ordinal = ordinal;
  node.segment = segment;
  node.data = sets_[condition];
  if (control != 0) node.control = control - 1;
  return static_cast<Control>(nodes_.size());
}

FlowGraph::Tag FlowGraph::choose(ThreadId thread, Tag value, Control edge) {
  return edge == 0 ? value : join(thread, value, set_of({edge - 1}));
}

}  // namespace heddle
