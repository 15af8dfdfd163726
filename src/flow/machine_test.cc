// What FlowMachine makes of small traces written by hand, seen through FlowGraph. A vertex is
// printed as its number, kind and variable, then what it depends on.
#include "flow/graph.h"
#include "trace/text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle {
namespace {

std::string numbers(const char* what, const std::vector<NodeId>& nodes) {
  std::string out;
  for (const NodeId node : nodes) out += (out.empty() ? "" : ",") + std::to_string(node);
  return out.empty() ? out : std::string(" ") + what + "=" + out;
}

std::vector<std::string> graph_of(const std::string& text) {
  const Trace trace = trace_from_text(text);
  FlowGraph graph(trace.catalog);
  graph.on(trace.events, 0);
  std::vector<std::string> out;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const FlowNode& node = graph.nodes()[id];
    std::string line = std::to_string(id);
    if (node.kind == EventKind::kBranch) {
      line += " branch";
    } else {
      line += node.kind == EventKind::kRead ? " r" : node.kind == EventKind::kWrite ? " w" : " rmw";
      for (const Symbol& symbol : trace.catalog.symbols) {
        if (node.address >= symbol.address && node.address < symbol.address + symbol.size)
          line += " " + std::string(trace.catalog.text(symbol.name));
      }
    }
    line += numbers("data", node.data) + numbers("address", node.address_of) +
            numbers("memory", node.memory);
    if (node.control != kNoNode) line += " control=" + std::to_string(node.control);
    out.push_back(line);
  }
  return out;
}

using Lines = std::vector<std::string>;

// Sites 1–6: three reads, three writes.
const std::string kSites =
    "site 1 @1 kind=r\nsite 2 @2 kind=r\nsite 3 @3 kind=r\n"
    "site 4 @4 kind=w\nsite 5 @5 kind=w\nsite 6 @6 kind=w\n";

TEST(FlowMachine, AStoreDependsOnWhatItsValueAndItsAddressCameFrom) {
  const std::string text = kSites +
                           "function 1 f registers=2\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#2 %1\n"
                           "  access @#4 address=(%1) value=(%0)\n"
                           "  ends return\n"
                           "t0: segment 1\n"
                           "t0: r x @#1\n"
                           "t0: r p @#2\n"
                           "t0: w y @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r p", "2 w y data=0 address=1"}));
}

TEST(FlowMachine, AReadDependsOnItsOwnThreadsLastWriter) {
  const std::string text = kSites +
                           "function 1 f registers=1\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#4\n"
                           "  access @#1 %0\n"
                           "  ends return\n"
                           "t0: segment 1\n"
                           "t0: w x @#4\n"
                           "t1: segment 1\n"
                           "t1: w x @#4\n"
                           "t0: r x @#1\n"
                           "t1: r x @#1\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 w x", "1 w x", "2 r x memory=0", "3 r x memory=1"}));
}

TEST(FlowMachine, ABranchControlsItsBlocksOnly) {
  const std::string text = kSites +
                           "function 1 f registers=1\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends branch from=(%0)\n"
                           "segment 2 in f block=1 index=0 parents=0\n"
                           "  access @#4\n"
                           "  ends fall\n"
                           "segment 3 in f block=2 index=0\n"
                           "  access @#5\n"
                           "  ends return\n"
                           "t0: segment 1\n"
                           "t0: r c @#1\n"
                           "t0: segment 2\n"
                           "t0: w x @#4\n"
                           "t0: segment 3\n"
                           "t0: w y @#5\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r c", "1 branch data=0", "2 w x control=1", "3 w y"}));
}

// x = 1 under `if (c)`, stored after it: the value came from nowhere, the choice from c.
TEST(FlowMachine, AChosenConstantDependsOnTheBranchThatChose) {
  const std::string program = kSites +
                              "function 1 f registers=2\n"
                              "segment 1 in f block=0 index=0\n"
                              "  access @#1 %0\n"
                              "  ends branch from=(%0)\n"
                              "segment 2 in f block=1 index=0 parents=0\n"
                              "  ends fall\n"
                              "segment 3 in f block=2 index=0\n"
                              "  phi %1 0() 1()\n"
                              "  access @#4 value=(%1)\n"
                              "  ends return\n";
  EXPECT_EQ(graph_of(program + "t0: segment 1\nt0: r c @#1\nt0: segment 2\nt0: segment 3\n"
                               "t0: w x @#4\n"),
            (Lines{"0 r c", "1 branch data=0", "2 w x data=1"}));
  EXPECT_EQ(graph_of(program + "t0: segment 1\nt0: r c @#1\nt0: segment 3\nt0: w x @#4\n"),
            (Lines{"0 r c", "1 branch data=0", "2 w x"}));
}

// Swapping two values on a loop's edge: each phi reads the registers as they were on the edge.
TEST(FlowMachine, PhisOfABlockAreTakenAtOnce) {
  const std::string text = kSites +
                           "function 1 f registers=4\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#2 %1\n"
                           "  ends fall\n"
                           "segment 2 in f block=1 index=0\n"
                           "  phi %2 0(%0) 1(%3)\n"
                           "  phi %3 0(%1) 1(%2)\n"
                           "  access @#4 value=(%2)\n"
                           "  access @#5 value=(%3)\n"
                           "  ends fall\n"
                           "t0: segment 1\nt0: r x @#1\nt0: r y @#2\n"
                           "t0: segment 2\nt0: w a @#4\nt0: w b @#5\n"
                           "t0: segment 2\nt0: w a @#4\nt0: w b @#5\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r y", "2 w a data=0", "3 w b data=1", "4 w a data=1",
                                   "5 w b data=0"}));
}

// while (c) x = …; y = …
TEST(FlowMachine, ALoopsBranchControlsItsNextExecutionAndTheBodyButNotWhatFollows) {
  const std::string text = kSites +
                           "function 1 f registers=1\n"
                           "segment 1 in f block=0 index=0\n"
                           "  ends fall\n"
                           "segment 2 in f block=1 index=0 parents=1\n"
                           "  access @#1 %0\n"
                           "  ends branch from=(%0)\n"
                           "segment 3 in f block=2 index=0 parents=1\n"
                           "  access @#4\n"
                           "  ends fall\n"
                           "segment 4 in f block=3 index=0\n"
                           "  access @#5\n"
                           "  ends return\n"
                           "t0: segment 1\n"
                           "t0: segment 2\nt0: r c @#1\n"
                           "t0: segment 3\nt0: w x @#4\n"
                           "t0: segment 2\nt0: r c @#1\n"
                           "t0: segment 4\nt0: w y @#5\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r c", "1 branch data=0", "2 w x control=1", "3 r c control=1",
                                   "4 branch data=3 control=1", "5 w y"}));
}

const std::string kCall = kSites +
                          "function 1 f registers=2\n"
                          "function 2 g linkage=g parameters=1 registers=2\n"
                          "segment 1 in f block=0 index=0\n"
                          "  access @#1 %0\n"
                          "  ends call arguments=(%0) defines=%1 callee=g\n"
                          "segment 2 in f block=0 index=1\n"
                          "  access @#4 value=(%1)\n"
                          "  ends return\n"
                          "segment 3 in g block=0 index=0\n"
                          "  access @#5 value=(%0)\n"
                          "  access @#2 %1\n"
                          "  ends return from=(%1)\n";

TEST(FlowMachine, ArgumentsGoInAndResultsComeOut) {
  EXPECT_EQ(graph_of(kCall + "t0: segment 1\nt0: r x @#1\n"
                             "t0: segment 3\nt0: w a @#5\nt0: r b @#2\n"
                             "t0: segment 2\nt0: w y @#4\n"),
            (Lines{"0 r x", "1 w a data=0", "2 r b", "3 w y data=2"}));
}

TEST(FlowMachine, AnUnknownCalleesResultDependsOnItsArguments) {
  EXPECT_EQ(graph_of(kCall + "t0: segment 1\nt0: r x @#1\nt0: segment 2\nt0: w y @#4\n"),
            (Lines{"0 r x", "1 w y data=0"}));
}

// strcpy and kin: site 3 and 6 are of no segment.
TEST(FlowMachine, LibraryAccessesReadAndWriteOnBehalfOfTheCall) {
  EXPECT_EQ(graph_of(kCall + "t0: segment 1\nt0: r x @#1\nt0: r s @#3\nt0: w d @#6\n"
                             "t0: segment 2\nt0: w y @#4\n"),
            (Lines{"0 r x", "1 r s", "2 w d data=0,1", "3 w y data=0,1"}));
}

// qsort(…, compare): compare's parameters come from nowhere known, and what it returns is not
// qsort's result. Its second activation is controlled like its first, not by its own branch.
TEST(FlowMachine, ACallbackIsNotTheCallee) {
  const std::string text = kSites +
                           "function 1 f registers=2\n"
                           "function 2 compare linkage=compare parameters=1 registers=2\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends call arguments=(%0) defines=%1 callee=qsort\n"
                           "segment 2 in f block=0 index=1\n"
                           "  access @#4 value=(%1)\n"
                           "  ends return\n"
                           "segment 3 in compare block=0 index=0\n"
                           "  access @#2 %1 address=(%0)\n"
                           "  ends branch from=(%1)\n"
                           "segment 4 in compare block=1 index=0 parents=0\n"
                           "  access @#5\n"
                           "  ends return from=(%1)\n"
                           "t0: segment 1\nt0: r x @#1\n"
                           "t0: segment 3\nt0: r a @#2\n"
                           "t0: segment 4\nt0: w n @#5\n"
                           "t0: segment 3\nt0: r a @#2\n"
                           "t0: segment 4\nt0: w n @#5\n"
                           "t0: segment 2\nt0: w y @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r a", "2 branch data=1", "3 w n control=2", "4 r a",
                                   "5 branch data=4", "6 w n control=5", "7 w y data=0"}));
}

// An Itanium constructor may be called by one of its names and defined by another.
TEST(FlowMachine, VariantsOfAConstructorAreOneFunction) {
  const std::string text = kSites +
                           "function 1 f registers=1\n"
                           "function 2 Foo linkage=_ZN3FooC2Ei parameters=1 registers=1\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends call arguments=(%0) callee=_ZN3FooC1Ei\n"
                           "segment 2 in Foo block=0 index=0\n"
                           "  access @#4 value=(%0)\n"
                           "  ends return\n"
                           "t0: segment 1\nt0: r x @#1\nt0: segment 2\nt0: w y @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 w y data=0"}));
}

// f(n): if (n) f(n - 1); store n. What a branch controls, it controls in its own activation; each
// activation has registers of its own.
TEST(FlowMachine, EveryActivationHasItsOwnRegistersAndBranches) {
  const std::string text = kSites +
                           "function 1 f linkage=f parameters=1 registers=3\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %1\n"
                           "  ends branch from=(%1)\n"
                           "segment 2 in f block=1 index=0 parents=0\n"
                           "  ends call arguments=(%1) defines=%2 callee=f\n"
                           "segment 3 in f block=1 index=1 parents=0\n"
                           "  access @#4 value=(%1)\n"
                           "  ends fall\n"
                           "segment 4 in f block=2 index=0\n"
                           "  access @#5 value=(%0)\n"
                           "  ends return\n"
                           "t0: segment 1\nt0: r x @#1\n"
                           "t0: segment 2\n"
                           "t0: segment 1\nt0: r x @#1\n"
                           "t0: segment 4\nt0: w b @#5\n"
                           "t0: segment 3\nt0: w a @#4\n"
                           "t0: segment 4\nt0: w b @#5\n";
  EXPECT_EQ(graph_of(text),
            (Lines{"0 r x", "1 branch data=0", "2 r x control=1", "3 branch data=2 control=1",
                   "4 w b data=0 control=1", "5 w a data=0 control=1", "6 w b"}));
}

// f calls g, g throws, f catches: g's frame is dropped without a return.
TEST(FlowMachine, AnExceptionLeavesFramesWithoutReturn) {
  const std::string text = kSites +
                           "function 1 f registers=2\n"
                           "function 2 g linkage=g parameters=1 registers=2\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends call arguments=(%0) defines=%1 callee=g\n"
                           "segment 2 in g block=0 index=0\n"
                           "  access @#2 %1\n"
                           "  ends call arguments=(%1) callee=__cxa_throw\n"
                           "segment 3 in f block=2 index=0\n"
                           "  access @#4 value=(%0)\n"
                           "  ends return\n"
                           "t0: segment 1\nt0: r x @#1\n"
                           "t0: segment 2\nt0: r y @#2\n"
                           "t0: segment 3\nt0: w z @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r y", "2 w z data=0"}));
}

// f calls itself, the inner one throws, the outer one catches. Only Leave tells them apart.
TEST(FlowMachine, AnExceptionOutOfARecursionGoesOnInTheRightActivation) {
  const std::string text = kSites +
                           "function 1 f linkage=f registers=1\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  ends call arguments=(%0) callee=f\n"
                           "segment 2 in f block=1 index=0\n"
                           "  access @#4 value=(%0)\n"
                           "  ends return\n"
                           "t0: enter f\nt0: segment 1\nt0: r x @#1\n"
                           "t0: enter f\nt0: segment 1\nt0: r y @#1\n"
                           "t0: leave f\n"
                           "t0: segment 2\nt0: w z @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r y", "2 w z data=0"}));
}

// The item of site 1 copied nothing and has no event; a fence is an item without memory.
TEST(FlowMachine, ItemsWithoutAccessArePassedOver) {
  const std::string text = kSites +
                           "site 7 @7 kind=fence\n"
                           "function 1 f registers=2\n"
                           "segment 1 in f block=0 index=0\n"
                           "  access @#1 %0\n"
                           "  access @#4 value=(%0)\n"
                           "  access @#2 %1\n"
                           "  access @#7\n"
                           "  ends branch from=(%1)\n"
                           "segment 2 in f block=1 index=0 parents=0\n"
                           "  access @#5 value=(%0 %1)\n"
                           "  ends return\n"
                           "t0: segment 1\nt0: r x @#2\nt0: fence.seq_cst @#7\n"
                           "t0: segment 2\nt0: w y @#5\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 branch data=0", "2 w y data=0 control=1"}));
}

// Begun before the recording did, or by code that was not instrumented.
TEST(FlowMachine, AFunctionWhoseBeginningIsMissingDoesNotDisturbItsCaller) {
  const std::string text = kCall +
                           "function 3 h registers=1\n"
                           "segment 4 in h block=3 index=0\n"
                           "  access @#3 %0\n"
                           "  ends fall\n"
                           "t0: segment 1\nt0: r x @#1\n"
                           "t0: segment 4\nt0: r q @#3\n"
                           "t0: segment 2\nt0: w y @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 r q", "2 w y data=0"}));
}

TEST(FlowMachine, ATraceWithoutFlowHasNoDependencesThroughRegisters) {
  EXPECT_EQ(graph_of("t0: r x\nt0: w y\nt1: r y\nt0: r y\n"),
            (Lines{"0 r x", "1 w y", "2 r y", "3 r y memory=1"}));
}

// Registers and blocks beyond what the function has are ignored.
TEST(FlowMachine, WrongNumbersInADescriptorDoNoHarm) {
  const std::string text = kSites +
                           "function 1 f registers=1\n"
                           "segment 1 in f block=4000000000 index=0 parents=4000000001\n"
                           "  access @#1 %4000000000\n"
                           "  access @#4 value=(%7 %4000000000) address=(%1)\n"
                           "  ends branch from=(%3)\n"
                           "t0: segment 1\nt0: r x @#1\nt0: w y @#4\n";
  EXPECT_EQ(graph_of(text), (Lines{"0 r x", "1 w y"}));
}

// A sum over many reads gets a vertex of its own instead of ever longer lists.
TEST(FlowMachine, AValueOfManySourcesIsAVertex) {
  std::string text = kSites +
                     "function 1 f registers=2\n"
                     "segment 1 in f block=0 index=0\n"
                     "  ends fall\n"
                     "segment 2 in f block=1 index=0\n"
                     "  phi %0 0() 1(%0 %1)\n"
                     "  access @#1 %1\n"
                     "  ends fall\n"
                     "segment 3 in f block=2 index=0\n"
                     "  access @#4 value=(%0)\n"
                     "  ends return\n"
                     "t0: segment 1\n";
  for (int i = 0; i < 200; ++i) text += "t0: segment 2\nt0: r x @#1\n";
  const Trace trace = trace_from_text(text + "t0: segment 3\nt0: w y @#4\n");
  FlowGraph graph(trace.catalog);
  graph.on(trace.events, 0);
  std::size_t values = 0;
  for (const FlowNode& node : graph.nodes()) {
    EXPECT_LE(node.data.size(), FlowGraph::kMaxSources + 1);
    values += node.kind == EventKind{};
  }
  EXPECT_EQ(values, 3u);
  EXPECT_EQ(graph.nodes().size(), 200u + 3u + 1u);
}

}  // namespace
}  // namespace heddle
