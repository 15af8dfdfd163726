// The dependence graph of a trace: the td-PDG of svd-2005, section 3.1, for every thread.
//
// Vertices are accesses and branches. Arithmetic between them is collapsed by the descriptors: a
// store of a + b depends directly on the reads of a and b, and on the branch that chose between
// values of which one was taken. A value that comes from very many reads (a sum over an array) gets
// a vertex of its own, so that the graph grows with the trace and not with its square: kind 0,
// `data` what it was computed from.
//
// This is the form for people (`heddle units`) and for the offline algorithm; it keeps every
// vertex. Detectors that must run in bounded memory are clients of FlowMachine themselves.
#pragma once

#include "flow/machine.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xffffffffu;

struct FlowNode {
  EventKind kind{};  // kRead, kWrite, kRmw, kBranch; 0 for a value of many sources
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
  static constexpr std::size_t kMaxSources = 64;

  explicit FlowGraph(const Catalog& catalog);

  void on(std::span<const Event> batch, EventOrdinal first);

  std::span<const FlowNode> nodes() const { return nodes_; }

  // ---- client of FlowMachine; a tag is a set of vertices, a control one plus a branch's ----
  using Tag = std::uint32_t;
  using Control = std::uint32_t;
  Tag join(ThreadId thread, Tag a, Tag b);
  Tag load(const Event& event, EventOrdinal ordinal, TagList<Tag> address, Control control);
  void store(const Event& event, EventOrdinal ordinal, TagList<Tag> data, TagList<Tag> address,
             Control control);
  Tag update(const Event& event, EventOrdinal ordinal, TagList<Tag> data, TagList<Tag> address,
             Control control);
  Control branch(ThreadId thread, EventOrdinal ordinal, SegmentId segment, Tag condition,
                 Control control);
  Tag choose(ThreadId thread, Tag value, Control edge);
  static bool choices() { return true; }

 private:
  struct ByteKey {
    ThreadId thread;
    Address byte;
    bool operator==(const ByteKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const ByteKey& key) {
      return H::combine(std::move(h), key.thread, key.byte);
    }
  };

  FlowNode& add(const Event& event, EventOrdinal ordinal, TagList<Tag> data, TagList<Tag> address,
                Control control);
  std::vector<NodeId> all_of(TagList<Tag> tags) const;
  void find_writers(FlowNode& node);
  void note_write(const FlowNode& node, NodeId id);
  Tag set_of(std::vector<NodeId> nodes);

  FlowMachine<FlowGraph> machine_;
  std::vector<FlowNode> nodes_;
  std::vector<std::vector<NodeId>> sets_;  // sorted, unique; sets_[0] is empty
  absl::flat_hash_map<std::vector<NodeId>, Tag> tags_;
  absl::flat_hash_map<ByteKey, NodeId> last_writer_;
};

}  // namespace heddle
