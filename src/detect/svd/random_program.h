// Tiny random programs with registers, pointers, memory, branches, loops, calls and library calls,
// run interleaved: the judge of flow and SVD.
//
// A program is compiled the way the plugin does it (segments, virtual registers, phis, control
// parents) and, independently, interpreted: the interpreter carries, for every machine register,
// the set of statements that its value came from, and so knows every dependence without
// descriptors.
#pragma once

#include "flow/graph.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <vector>

namespace heddle::svd {

struct RandomProgramOptions {
  int threads = 2;
  int registers = 3;
  int shared_variables = 2;
  int own_variables = 2;  // of each thread
  int statements = 8;     // of each thread, bodies not counted
  bool plain = false;     // loads, stores, sums and ifs of single variables only
  int iterations = 3;     // of a loop, at most
  int turn = 1;           // accesses before another thread may go on, at most
  bool walks = false;     // loops, many of them, go from variable to variable
  bool marks = false;     // calls have an Enter and a Leave
};

struct RandomRun {
  Catalog catalog;
  std::vector<Event> events;
  std::vector<FlowNode> truth;  // the graph as the interpreter saw it, in execution order
};

RandomRun run_random_program(std::uint64_t seed, const RandomProgramOptions& options);

}  // namespace heddle::svd
