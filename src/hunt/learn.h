// Learning invariants: the loop of AVIO-IE (Lu et al., section 3.2, figure 7).
//
// The program runs under one seed after the other with AVIO attached; what a passing run executed
// and split is evidence (avio/invariants.h). A failing run teaches nothing. Learning stops after a
// number of runs, or when the last m passing runs dropped no invariant.
#pragma once

#include "base/result.h"
#include "detect/avio/invariants.h"
#include "hunt/observed_run.h"

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::hunt {

struct LearnOptions {
  ObserveRequest request;  // without seed
  std::uint64_t first_seed = 1;
  std::uint64_t runs = 100;
  std::uint64_t until_stable = 0;  // m; 0: make all runs
  std::uint32_t threshold = 0;     // T
  unsigned granule = 1;
  // A shell command that decides whether a run passed (status 0): it gets the run's output as its
  // input and the run's exit status in HEDDLE_STATUS. Empty: exit status 0 passes. A signal, a hang
  // and a deadlock never pass.
  std::string judge;
};

struct LearnProgress {
  std::uint64_t run = 0;  // 1, 2, …
  std::uint64_t seed = 0;
  bool passed = false;
  std::string end;                // "exit status 0"
  std::size_t dropped = 0;        // instructions and pairs that this run split for the first time
  std::size_t invariants = 0;     // instructions that are never split, so far
  std::size_t pairs = 0;          // pairs never split though their I was, after another access
  std::uint64_t stable_runs = 0;  // passing runs since the last drop
};

struct LearnResult {
  avio::Invariants invariants;
  std::uint64_t runs = 0, passed = 0;
  bool stable = false;
};

// Adds to `known`, which is about the same program or empty.
Result<LearnResult> learn(const LearnOptions& options, const avio::Invariants& known,
                          const std::function<void(const LearnProgress&)>& progress);

// The name under which a program's invariants are known: its file name.
std::string program_name(const std::string& path);

// Whether a learned file is about the program that a trace is of; the error says why not.
Status check_same_program(const avio::Invariants& invariants, const Catalog& catalog,
                          const std::string& file);

}  // namespace heddle::hunt
