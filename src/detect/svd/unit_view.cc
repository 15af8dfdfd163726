#include "detect/svd/unit_view.h"

#include "finding/describe.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::svd {
namespace {

std::string without_folders(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  return std::string(slash == std::string_view::npos ? file : file.substr(slash + 1));
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

UnitView view_unit(std::span<const FlowNode> nodes, const OfflineResult& result,
                   std::uint32_t number) {
  const OfflineUnit& unit = result.units[number];
  UnitView out;
  out.thread = unit.thread;
  out.cut_by = unit.cut_by;
  out.cut_at = unit.cut_at;
  out.first = nodes[unit.members.front()].ordinal;
  out.last = nodes[unit.members.back()].ordinal;
  std::map<UnitStatement, std::size_t> known;
  std::map<NodeId, std::size_t> index;
  for (const NodeId id : unit.members) {
    const FlowNode& node = nodes[id];
    const UnitStatement statement{node.kind, node.site, node.segment};
    const auto [at, is_new] = known.try_emplace(statement, out.nodes.size());
    if (is_new) out.nodes.push_back({statement, 0, node.address, node.size, false});
    UnitView::Node& line = out.nodes[at->second];
    ++line.count;
    index[id] = at->second;
    if (is_read(node.kind)) {
      line.input |= std::none_of(node.memory.begin(), node.memory.end(),
                                 [&](NodeId writer) { return result.unit_of[writer] == number; });
    }
  }
  for (const NodeId id : unit.members) {
    const auto arcs = [&](const std::vector<NodeId>& to, UnitView::Through through) {
      for (const NodeId earlier : to) {
        const auto at = index.find(earlier);
        if (at != index.end()) ++out.arcs[{index[id], at->second, through}];
      }
    };
    arcs(nodes[id].data, UnitView::Through::kRegisters);
    arcs(nodes[id].memory, UnitView::Through::kMemory);
    if (nodes[id].control != kNoNode) arcs({nodes[id].control}, UnitView::Through::kControl);
  }
  return out;
}

std::string place_of(const Catalog& catalog, const UnitStatement& statement) {
  if (statement.kind != EventKind::kBranch) {
    const Site& site = catalog.site(statement.site);
    return fmt::format("{}:{}", without_folders(catalog.text(site.file)), site.line);
  }
  const Segment& segment = catalog.segment(statement.segment);
  if (!segment.items.empty()) {
    const Site& site = catalog.site(segment.items.back().site);
    return fmt::format("{}:{}", without_folders(catalog.text(site.file)), site.line);
  }
  // A loop's test may touch no memory: the function it is in is what can be said.
  const Function& function = catalog.function(segment.function);
  if (function.line == 0) return std::string(catalog.text(function.name));
  return fmt::format("in the function of {}:{}", without_folders(catalog.text(function.file)),
                     function.line);
}

std::string name_of(const Catalog& catalog, const UnitView::Node& node) {
  switch (node.statement.kind) {
    case EventKind::kBranch:
      return "branch";
    case EventKind::kRead:
    case EventKind::kWrite:
    case EventKind::kRmw: {
      const char* verb = node.statement.kind == EventKind::kRead    ? "reads"
                         : node.statement.kind == EventKind::kWrite ? "writes"
                                                                    : "updates";
      const VariableName variable =
          Describer(catalog).variable(node.statement.site, node.address, node.size);
      return fmt::format("{} {}", verb, variable.name);
    }
    default:
      return "value";
  }
}

std::string dot(const Catalog& catalog, const UnitView& view) {
  std::string out = "digraph unit {\n  rankdir=BT;\n  node [shape=box, fontname=monospace];\n";
  for (std::size_t i = 0; i < view.nodes.size(); ++i) {
    const UnitView::Node& node = view.nodes[i];
    std::string label =
        fmt::format("{} {}", place_of(catalog, node.statement), name_of(catalog, node));
    if (node.count > 1) label += fmt::format(" ({} times)", node.count);
    out += fmt::format("  n{} [label={}{}];\n", i, in_quotes(label),
                       node.statement.kind == EventKind::kBranch ? ", shape=diamond"
                       : node.input                              ? ", style=bold"
                                                                 : "");
  }
  for (const auto& [arc, count] : view.arcs) {
    out += fmt::format("  n{} -> n{}{};\n", arc.later, arc.earlier,
                       arc.through == UnitView::Through::kControl  ? " [style=dashed]"
                       : arc.through == UnitView::Through::kMemory ? " [color=blue]"
                                                                   : "");
  }
  return out + "}\n";
}

}  // namespace heddle::svd
