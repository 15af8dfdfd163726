// One computational unit as people look at it (`heddle units`): its statements and what holds them
// together, by definition (offline.h). Executions of one statement are one line with a count, so
// that the unit of a loop fits a screen.
#pragma once

#include "detect/svd/offline.h"
#include "flow/graph.h"
#include "trace/catalog.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace heddle::svd {

// A statement of the program: an access's site or a branch's segment.
struct UnitStatement {
  EventKind kind{};
  SiteId site{};
  SegmentId segment{};
  auto operator<=>(const UnitStatement&) const = default;
};

struct UnitView {
  enum class Through { kRegisters, kMemory, kControl };

  struct Node {
    UnitStatement statement;
    std::uint64_t count = 0;
    Address address{};  // of the first execution
    std::uint32_t size{};
    bool input = false;  // reads what the unit had not written
  };
  struct Arc {
    std::size_t later{};
    std::size_t earlier{};
    Through through{};
    auto operator<=>(const Arc&) const = default;
  };

  ThreadId thread{};
  EventOrdinal first{};
  EventOrdinal last{};
  std::vector<Node> nodes;  // in the order of their first execution
  std::map<Arc, std::uint64_t> arcs;
  NodeId cut_by = kNoNode;  // see OfflineUnit
  NodeId cut_at = kNoNode;
};

UnitView view_unit(std::span<const FlowNode> nodes, const OfflineResult& result,
                   std::uint32_t unit);

// The line of a branch is that of the last access of its segment; without one, the function's.
std::string place_of(const Catalog& catalog, const UnitStatement& statement);
std::string name_of(const Catalog& catalog, const UnitView::Node& node);

std::string dot(const Catalog& catalog, const UnitView& view);

}  // namespace heddle::svd
