// The one table of options, as CLI11 holds it, in the form that help, man pages and completion
// read.
#pragma once

#include "cli/verb.h"
#include "cli/words.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

struct OptionFacts {
  std::vector<std::string> names;  // "-o", "--output"; the name itself for a positional
  std::string value;               // "FILE"; empty for a flag
  std::vector<std::string> choices;
  std::string description;
  std::string default_value;
  bool positional = false;
  bool required = false;
  bool several = false;
};

// The visible options of a verb: positionals first, then the rest, each as declared.
std::vector<OptionFacts> options_of(const CLI::App& app);

// The verbs of a verb: `merge` of `heddle learn`.
std::vector<const CLI::App*> actions_of(const CLI::App& app);

// "[-o FILE] [--strict] TRACE"
std::string usage_of(const CLI::App& app);

// The verb with that name; nullptr if there is none.
const Verb* find_verb(std::string_view name);

}  // namespace heddle::cli
