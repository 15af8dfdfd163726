// The dependences of small functions (functions.cc), as recorded from the compiled program, against
// expectations written by hand from the source.
//
// A line is one write: the variable; `data=` whose reads its value came from, with `choice` when a
// branch decided which of several values it was; `address=` likewise; `if` whose reads decided that
// it happened, innermost first. Executions that read alike are one line. Without optimisation,
// local variables are memory that nobody else sees, and the plugin says what is stored there, but
// not when: there `choice` is left out.
#include "flow/graph.h"
#include "trace/source.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle {
namespace {

namespace fs = std::filesystem;
using Lines = std::set<std::string>;

class Functions : public testing::TestWithParam<std::string> {
 protected:
  enum class Choices { kShown, kLeftOut };

  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "heddle-flow-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    const std::string folder = name;
    for (const std::string level : {"-O0", "-O1", "-O2"}) {
      const std::string program = fmt::format("{}/functions{}", folder, level);
      const std::string trace = program + ".heddle";
      const std::string compile =
          fmt::format("{} -g {} {} -o {}", HEDDLE_CXX, level, HEDDLE_FUNCTIONS, program);
      const std::string record =
          fmt::format("{} record -q --level flow -o {} -- {}", HEDDLE_COMMAND, trace, program);
      ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
      ASSERT_EQ(std::system(record.c_str()), 0) << record;
      read(trace, level == "-O0" ? Choices::kLeftOut : Choices::kShown, seen_[level]);
    }
    fs::remove_all(folder);
  }

  static void read(const std::string& path, Choices choices, std::map<std::string, Lines>& out) {
    Result<std::unique_ptr<EventSource>> source = open_trace(path);
    ASSERT_TRUE(source.ok()) << source.error().message;
    const Catalog& catalog = (*source)->catalog();
    FlowGraph graph(catalog);
    EventOrdinal first = 0;
    while (true) {
      Result<std::span<const Event>> batch = (*source)->next();
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      if (batch->empty()) break;
      graph.on(*batch, first);
      first += batch->size();
    }
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      const FlowNode& node = graph.nodes()[id];
      if (!is_write(node.kind)) continue;
      const Function& function = catalog.function(catalog.site(node.site).function);
      out[std::string(catalog.text(function.linkage_name))].insert(
          line(catalog, graph, node, choices));
    }
  }

  static std::string variable(const Catalog& catalog, const FlowNode& node) {
    for (const Symbol& symbol : catalog.symbols) {
      if (node.address >= symbol.address && node.address < symbol.address + symbol.size)
        return std::string(catalog.text(symbol.name));
    }
    return "?";
  }

  static std::string names(const Catalog& catalog, const FlowGraph& graph,
                           const std::vector<NodeId>& nodes, Choices choices) {
    std::set<std::string> all;
    for (const NodeId id : nodes) {
      const FlowNode& node = graph.nodes()[id];
      if (node.kind != EventKind::kBranch) {
        all.insert(variable(catalog, node));
      } else if (choices == Choices::kShown) {
        all.insert("choice");
      }
    }
    std::string out;
    for (const std::string& name : all) out += (out.empty() ? "" : ",") + name;
    return out;
  }

  static std::string line(const Catalog& catalog, const FlowGraph& graph, const FlowNode& node,
                          Choices choices) {
    std::string out = variable(catalog, node);
    if (const std::string data = names(catalog, graph, node.data, choices); !data.empty())
      out += " data=" + data;
    if (const std::string from = names(catalog, graph, node.address_of, choices); !from.empty())
      out += " address=" + from;
    std::string last;
    for (NodeId at = node.control; at != kNoNode; at = graph.nodes()[at].control) {
      const std::string condition =
          names(catalog, graph, graph.nodes()[at].data, Choices::kLeftOut);
      if (!condition.empty() && condition != last) out += " if " + condition;
      last = condition;
    }
    return out;
  }

  static std::map<std::string, std::map<std::string, Lines>> seen_;
};

std::map<std::string, std::map<std::string, Lines>> Functions::seen_;

const std::map<std::string, Lines> kExpected = {
    {"copy", {"out data=a"}},
    {"sum", {"out data=a,b"}},
    {"constant", {"out"}},
    {"product_of_three", {"out data=a,b,n"}},
    {"if_then", {"out if a"}},
    {"if_value", {"out data=b if a"}},
    {"if_else", {"out data=b if c"}},
    {"after_if", {"out if a", "out2"}},
    {"nested", {"out if b if a", "out2 if a"}},
    {"both", {"out if b if a"}},
    {"either", {"out if b if c"}},
    {"chosen", {"sink if a", "out data=choice"}},
    {"total", {"out data=arr,choice"}},
    {"fill", {"to data=a address=choice if n", "to data=a if n"}},
    {"count_down", {"sink data=n if n", "sink data=choice,n if n", "out"}},
    {"do_while", {"sink data=arr", "sink data=arr if arr,n"}},
    {"search", {"out data=choice"}},
    {"through_pointer", {"out data=a address=p"}},
    {"from_pointer", {"out data=b"}},
    {"at_index", {"out data=arr"}},
    {"to_index", {"arr data=a address=index_"}},
    {"list_walk", {"out data=last_node"}},
    {"call_result", {"out data=a"}},
    {"put", {"sink data=b", "sink data=b if a"}},
    {"sign", {"sink if a"}},
    {"chosen_result", {"out data=choice"}},
    {"down", {"sink data=one if one"}},
    {"recursion", {"out data=b,choice"}},
    {"function_pointer", {"out data=a,b"}},
    {"copy_range", {"to data=from"}},
    {"library_call", {"buf data=text"}},
    {"fetch_add", {"counter data=a"}},
    {"exchange", {"counter data=a", "out data=counter"}},
    {"choice_of_three", {"out data=b if n"}},
    {"read_back", {"out data=a", "out2 data=out"}},
    {"thrower", {"? data=a if a"}},
    {"catches", {"out2 data=b"}},
    {"use", {"? data=a"}},
    {"local_array", {"?", "out data=?"}},
};

// "out data=b,choice" → "out data=b".
std::string without_choice(std::string line) {
  for (const std::string what : {",choice", "choice,", " data=choice", " address=choice"}) {
    if (const std::size_t at = line.find(what); at != std::string::npos)
      line.erase(at, what.size());
  }
  return line;
}

TEST_P(Functions, HaveTheDependencesOfTheirSource) {
  for (const auto& [function, lines] : kExpected) {
    Lines expected = lines;
    if (GetParam() == "-O0") {
      expected.clear();
      for (const std::string& line : lines) expected.insert(without_choice(line));
    }
    EXPECT_EQ(seen_[GetParam()][function], expected) << function << " at " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Functions, testing::Values("-O0", "-O1", "-O2"),
                         [](const auto& level) { return level.param.substr(1); });

}  // namespace
}  // namespace heddle
