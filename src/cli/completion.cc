// heddle completion: the command completes in a shell. Made from the same table as the help.
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/trace_verbs.h"

#include <memory>
#include <string>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string bash_script(const CLI::App& command) {
  std::vector<std::string> names;
  std::string options;
  std::string values;
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    names.emplace_back(verb.name);
    const CLI::App& app = *command.get_subcommand(std::string(verb.name));
    std::vector<std::string> words;
    std::vector<OptionFacts> all = options_of(app);
    for (const CLI::App* action : actions_of(app)) {
      words.push_back(action->get_name());
      const std::vector<OptionFacts> more = options_of(*action);
      all.insert(all.end(), more.begin(), more.end());
    }
    for (const OptionFacts& o : all) {
      if (o.positional) {
        words.insert(words.end(), o.choices.begin(), o.choices.end());
        continue;
      }
      words.insert(words.end(), o.names.begin(), o.names.end());
      if (o.value.empty()) continue;
      std::string pattern;
      for (const std::string& name : o.names) {
        pattern += fmt::format("{}{}:{}", pattern.empty() ? "" : "|", verb.name, name);
      }
      values +=
          o.choices.empty()
              ? fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", pattern)
              : fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                            pattern, joined(o.choices));
    }
    options += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, joined(words));
  }
  return fmt::format(R"(# Completion of heddle for bash: `source <(heddle completion bash)`.
_heddle() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} words= i
  # A target's own arguments, behind `--`, complete as files.
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then COMPREPLY=($(compgen -f -- "$word")); return; fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word")); return
  fi
  case "$verb:${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  case "$verb" in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -W "${{words//-[^ ]*/}}" -- "$word"))
  fi
}}
complete -o filenames -F _heddle heddle
)",
                     joined(names), values, options);
}

std::function<int()> declare(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "the shell")->required()->check(CLI::IsMember({"bash"}));
  return [&app, shell] {  // the option writes to `shell` before this is called
    Output out;
    out.write(bash_script(*app.get_parent()));
    const Status written = out.finish();
    return written.ok() ? static_cast<int>(kNothingNew) : fail(written.error());
  };
}

}  // namespace

const Verb kCompletionVerb = {
    .name = "completion",
    .summary = "Prints a script that completes heddle's verbs and options in a shell",
    .description = "Prints a script for the shell to source. It knows every verb and option.",
    .example = "source <(heddle completion bash)",
    .declare = declare,
};

}  // namespace heddle::cli
