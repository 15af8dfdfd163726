// heddle units: the computational unit that a statement belongs to.
#include "cli/verb_units.h"

#include "base/printable.h"
#include "detect/svd/offline.h"
#include "detect/svd/unit_view.h"
#include "finding/describe.h"
#include "flow/graph.h"
#include "report/source_text.h"
#include "report/words.h"
#include "trace/source.h"

#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

constexpr std::size_t kMaxNodes = 8'000'000;

struct Options {
  std::string trace;
  std::string at;
  std::uint64_t unit = 1;
  bool dot = false;
  bool salvage = false;
  std::vector<std::string> sources;
};

int fail(const std::string& message) {
  fmt::print(stderr, "heddle: {}\n", message);
  return kUsage;
}

struct Location {
  std::string file;
  std::uint32_t line = 0;
};

Result<Location> parse_location(const std::string& text) {
  Location out;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + colon + 1, end, out.line);
    out.file = text.substr(0, colon);
    if (error == std::errc() && at == end && !out.file.empty()) return out;
  }
  return Error{fmt::format("--at {}: expected FILE:LINE, as in shop.cc:12", text)};
}

// `wanted` names the file when it is a suffix of whole path components.
bool names(std::string_view file, std::string_view wanted) {
  return file.ends_with(wanted) &&
         (file.size() == wanted.size() || file[file.size() - wanted.size() - 1] == '/');
}

Result<bool> read(EventSource& source, FlowGraph& graph) {
  EventOrdinal first = 0;
  while (true) {
    Result<std::span<const Event>> batch = source.next();
    if (!batch.ok()) return batch.error();
    if (batch->empty()) return true;
    graph.on(*batch, first);
    first += batch->size();
    if (graph.nodes().size() > kMaxNodes) return false;
  }
}

std::string_view through(svd::UnitView::Through how) {
  switch (how) {
    case svd::UnitView::Through::kRegisters:
      return "value from";
    case svd::UnitView::Through::kMemory:
      return "reads what was written at";
    case svd::UnitView::Through::kControl:
      return "executed because of";
  }
  return "";
}

class Printer {
 public:
  Printer(const Catalog& catalog, std::span<const FlowNode> nodes, const Options& options)
      : catalog_(catalog), nodes_(nodes), source_(options.sources) {}

  void print(const svd::UnitView& view) {
    const std::string name = Describer(catalog_).thread(view.thread);
    fmt::print("thread {}{}, events {} to {}\n\n", view.thread,
               name.empty() ? "" : " (" + printable(name) + ")", view.first, view.last);
    section(view, "reads", [](const svd::UnitView::Node& n) { return is_read(n.statement.kind); });
    section(view, "writes",
            [](const svd::UnitView::Node& n) { return is_write(n.statement.kind); });
    fmt::print("held together by\n");
    for (const auto& [arc, count] : view.arcs) {
      fmt::print("  {:<28} {} {}{}\n", label(view.nodes[arc.later]), through(arc.through),
                 label(view.nodes[arc.earlier]),
                 count > 1 ? fmt::format("   {} times", count) : "");
    }
    if (view.arcs.empty()) fmt::print("  nothing: it is a single statement\n");
    fmt::print("\n{}\n", ending(view));
  }

 private:
  template <typename Chosen>
  void section(const svd::UnitView& view, std::string_view title, Chosen chosen) {
    fmt::print("{}\n", title);
    bool any = false;
    for (const svd::UnitView::Node& node : view.nodes) {
      if (!chosen(node)) continue;
      any = true;
      const Site& site = catalog_.site(node.statement.site);
      const std::string text = source_.line(std::string(catalog_.text(site.file)), site.line);
      const bool input = node.input && is_read(node.statement.kind) && title == "reads";
      fmt::print("  {:<28} {}{}{}\n", label(node), text, input ? "   input" : "",
                 node.count > 1 ? fmt::format("   {} times", node.count) : "");
    }
    if (!any) fmt::print("  nothing\n");
    fmt::print("\n");
  }

  std::string label(const svd::UnitView::Node& node) const {
    std::string what = svd::name_of(catalog_, node);
    if (const std::size_t blank = what.find(' '); blank != std::string::npos)
      what = what.substr(blank + 1);
    return report::short_name(
        printable(fmt::format("{} {}", svd::place_of(catalog_, node.statement), what)));
  }
  std::string label(NodeId id) const {
    const FlowNode& node = nodes_[id];
    return label({{node.kind, node.site, node.segment}, 1, node.address, node.size, false});
  }

  std::string ending(const svd::UnitView& view) const {
    if (view.cut_by == kNoNode) return "It did not end: it could grow until the trace did.";
    return fmt::format(
        "It ended before event {}: {} reads back what the unit had written at {}, and other "
        "threads access that too.",
        nodes_[view.cut_by].ordinal, label(view.cut_by), label(view.cut_at));
  }

  const Catalog& catalog_;
  std::span<const FlowNode> nodes_;
  report::SourceText source_;
};

int run(const Options& options) {
  const Result<Location> at = parse_location(options.at);
  if (!at.ok()) return fail(at.error().message);
  Result<std::unique_ptr<EventSource>> source =
      open_trace(options.trace, {.salvage = options.salvage});
  if (!source.ok()) return fail(source.error().message);
  const Catalog& catalog = (*source)->catalog();
  FlowGraph graph(catalog);
  const Result<bool> whole = read(**source, graph);
  if (!whole.ok()) return fail(whole.error().message);
  if (!*whole) {
    fmt::print(stderr, "heddle: {}: only the first {} accesses and branches were looked at\n",
               options.trace, kMaxNodes);
  }
  if (catalog.segments.size() <= 1) {
    return fail(
        fmt::format("{}: recorded without flow; record it with --level flow", options.trace));
  }

  const svd::OfflineResult result = svd::offline(graph.nodes(), 0);
  std::vector<std::uint32_t> units;  // that the statement is in, in order
  std::set<std::uint32_t> seen;
  std::size_t executions = 0;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const FlowNode& node = graph.nodes()[id];
    if (!is_access(node.kind)) continue;
    const Site& site = catalog.site(node.site);
    if (site.line != at->line || !names(catalog.text(site.file), at->file)) continue;
    ++executions;
    if (seen.insert(result.unit_of[id]).second) units.push_back(result.unit_of[id]);
  }
  if (units.empty()) {
    return fail(fmt::format("{}: no access at {} in this trace", options.trace, options.at));
  }
  if (options.unit == 0 || options.unit > units.size()) {
    return fail(fmt::format("--unit {}: the statement is in {} units, 1 to {}", options.unit,
                            units.size(), units.size()));
  }
  const svd::UnitView view =
      svd::view_unit(graph.nodes(), result, units[static_cast<std::size_t>(options.unit - 1)]);
  if (options.dot) {
    fmt::print("{}", svd::dot(catalog, view));
    return kNothingNew;
  }
  fmt::print("{}: {} accesses in {} unit{}; unit {}:\n", options.at, executions, units.size(),
             units.size() == 1 ? "" : "s", options.unit);
  Printer(catalog, graph.nodes(), options).print(view);
  return kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace, "a trace recorded at the flow level")->required();
  app.add_option("--at", options->at, "the statement")->required()->type_name("FILE:LINE");
  app.add_option("--unit", options->unit, "which of the units that the statement is in, from 1")
      ->capture_default_str();
  app.add_flag("--dot", options->dot, "print the unit for Graphviz");
  app.add_option("--source", options->sources, "folder to look for source files in; several")
      ->type_name("DIR");
  app.add_flag("--salvage", options->salvage,
               "read a damaged trace up to the first damage instead of refusing it");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kUnitsVerb = {
    .name = "units",
    .summary = "Shows the computational unit that a statement belongs to",
    .description =
        "Prints the stretch of a thread that is connected with a statement by data and control "
        "dependences: what it reads and writes, what holds it together and why it ended. Units are "
        "made by definition (svd-2005, section 3); the detector svd approximates them.",
    .example =
        "heddle units run.heddle --at shop.cc:15\n"
        "heddle units run.heddle --at shop.cc:15 --dot | dot -Tsvg > unit.svg",
    .declare = declare,
};

}  // namespace heddle::cli
