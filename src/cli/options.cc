#include "cli/options.h"

#include <algorithm>

namespace heddle::cli {
namespace {

// CLI11 writes the value of an option as "TEXT", "TEXT:{a,b}" or what type_name() was given.
void read_type(const std::string& type, OptionFacts& facts) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    facts.value = type;
    return;
  }
  std::string list = type.substr(open + 1, close - open - 1);
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    facts.choices.push_back(list.substr(start, comma - start));
    start = comma + 1;
  }
  for (const std::string& choice : facts.choices) {
    facts.value += (facts.value.empty() ? "" : "|") + choice;
  }
}

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts;
  facts.positional = option.get_positional() && option.get_lnames().empty();
  if (facts.positional) {
    facts.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), facts);
  facts.description = option.get_description();
  facts.default_value = option.get_default_str();
  facts.required = option.get_required();
  facts.several = option.get_items_expected_max() > 1;
  return facts;
}

}  // namespace

std::vector<OptionFacts> options_of(const CLI::App& app) {
  std::vector<OptionFacts> positional;
  std::vector<OptionFacts> rest;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionFacts facts = facts_of(*option);
    (facts.positional ? positional : rest).push_back(std::move(facts));
  }
  // CLI11 declares --help first; people look for it last.
  std::stable_partition(rest.begin(), rest.end(),
                        [](const OptionFacts& o) { return o.names.back() != "--help"; });
  positional.insert(positional.end(), rest.begin(), rest.end());
  return positional;
}

std::vector<const CLI::App*> actions_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* action) { return !action->get_name().empty(); });
}

std::string usage_of(const CLI::App& app) {
  std::string options;
  std::string positional;
  for (const OptionFacts& o : options_of(app)) {
    if (o.names.back() == "--help") continue;
    std::string one = o.names.front();
    if (o.positional) {
      if (o.several) one += "...";
      positional += " " + (o.required ? one : "[" + one + "]");
      continue;
    }
    if (!o.value.empty()) one += " " + o.value;
    options += " " + (o.required ? one : "[" + one + "]");
  }
  const std::string usage = options + positional;
  return usage.empty() ? usage : usage.substr(1);
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace heddle::cli
