// The dependence graph of a trace: the td-PDG of svd-2005, section 3.1, for every thread.
//
// Vertices are accesses and branches. Arithmetic between them is collapsed by the descriptors: a
// store of a + b depends directly on the reads of a and b. That loses no connection, because a
// vertex of arithmetic is connected to exactly what it is computed from.
//
// This is the form for people (`heddle units`) and for the offline algorithm; it keeps every
// vertex. Detectors that must run in bounded memory are clients of FlowMachine themselves.
#pragma once

#include "flow/machine.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace heddle {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffffffffu;

struct FlowNode {
  EventKind kind{};  // kRead, kWrite, kRmw or kBranch
  ThreadId thread{};
  EventOrdinal ordinal{};  // of the access; of the segment event for a branch
  SiteId site{};
  SegmentId segment{};  // branches only
  Address address{};
  std::uint32_t size{};

  std::vector<NodeId> data;  // through registers, into the value stored or the branch's condition
  std::vector<NodeId> address_of;  // through registers, into the address
  std::vector<NodeId> memory;      // this thread's last writers of the bytes read
  NodeId control = kNoNode;        // the branch that let it happen
};

class FlowGraph {
 public:
  explicit FlowGraph(const Catalog& catalog);

  void on(std::span<const Event> batch, EventOrdinal first);

  std::span<const FlowNode> nodes() const { return nodes_; }

  // ---- client of FlowMachine; a tag is a set of vertices ----
  using Tag = std::uint32_t;
  Tag join(ThreadId thread, Tag a, Tag b);
  Tag load(const Event& event, EventOrdinal ordinal, Tag address, Tag control);
  void store(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control);
  Tag update(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control);
  Tag branch(ThreadId thread, EventOrdinal ordinal, SegmentId segment, Tag condition, Tag control);

 private:
  FlowNode& add(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control);
  void find_writers(FlowNode& node);
  void note_write(const FlowNode& node, NodeId id);
  Tag set_of(std::vector<NodeId> nodes);

  FlowMachine<FlowGraph> machine_;
  std::vector<FlowNode> nodes_;
  std::vector<std::vector<NodeId>> sets_;  // sorted, unique; sets_[0] is empty
  std::map<std::vector<NodeId>, Tag> tags_;
  std::vector<std::unordered_map<Address, NodeId>> last_writer_;  // by thread, by byte
};

}  // namespace heddle
