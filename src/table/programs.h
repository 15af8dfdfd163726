// The programs of examples/ as examples/expected.json lists them, with what the papers say of them
// and what Heddle is known to make of them.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heddle::table {

// By detector, as `--detect` calls them; papers also have tools that Heddle has not.
using Verdicts = std::map<std::string, bool>;

struct Program {
  std::string name;
  std::string source;  // relative to examples/
  std::string group;   // folder
  std::string origin;
  std::string remark;
  bool bug = false;
  std::string symptom;  // "exit", "crash"; empty: no result betrays the bug
  std::string twin, corrects;
  std::optional<bool> right;  // correlated-2014: whether something is to be reported
  Verdicts paper;
  std::vector<std::uint64_t> seeds;  // that make it fail
  // With a bug: whether the detector finds it, that is on its marked lines, in a run of `seeds`.
  // Without: whether the detector says anything.
  Verdicts heddle;
  std::map<std::string, std::string> why;  // by detector: a difference or an exception, explained

  bool fails() const { return !symptom.empty(); }
};

// Reasons that hold for all programs of a kind are given once in the file and stand in every
// program's `why` here.
Result<std::vector<Program>> read_programs(const std::string& examples);

const Program* find_program(const std::vector<Program>& programs, const std::string& name);

// Puts seeds and verdicts into expected.json, whose layout is kept.
Status update_expected(const std::string& examples, const std::vector<Program>& programs);

}  // namespace heddle::table
