#include "cli/command.h"

#include "cli/options.h"
#include "cli/verb.h"

#include <cstdio>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

std::string option_lines(const CLI::App& app) {
  constexpr std::size_t kColumn = 26;
  std::string out;
  for (const OptionFacts& o : options_of(app)) {
    std::string left = "  ";
    for (std::size_t i = 0; i < o.names.size(); ++i) left += (i == 0 ? "" : ", ") + o.names[i];
    if (!o.positional && !o.value.empty()) left += " " + o.value;
    std::string description = o.description;
    if (!o.default_value.empty()) description += fmt::format(" [{}]", o.default_value);
    std::string right = wrapped(description, kColumn);
    if (left.size() + 2 <= kColumn) {
      right.replace(0, left.size(), left);
      out += right;
    } else {
      out += left;
      out += "\n";
      out += right;
    }
  }
  return out;
}

class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const CLI::App* parent = app->get_parent();
    if (parent == nullptr) return of_command(*app);
    if (parent->get_parent() != nullptr) return of_action(*app);
    return of_verb(*app, *find_verb(app->get_name()));
  }

 private:
  static std::string of_action(const CLI::App& app) {
    return fmt::format("usage: heddle {} {} {}\n\n{}\n{}", app.get_parent()->get_name(),
                       app.get_name(), usage_of(app), wrapped(app.get_description(), 0),
                       option_lines(app));
  }

  static std::string of_verb(const CLI::App& app, const Verb& verb) {
    std::string out = fmt::format("{}.\n\nusage: heddle {} {}\n\n{}\n{}", verb.summary, verb.name,
                                  usage_of(app), wrapped(verb.description, 0), option_lines(app));
    for (const CLI::App* action : actions_of(app)) out += "\n" + of_action(*action);
    out += verb.example.find('\n') == std::string_view::npos ? "\nexample:\n" : "\nexamples:\n";
    std::string_view rest = verb.example;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      out += fmt::format("  {}\n", rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
  }

  static std::string of_command(const CLI::App& app) {
    std::string out = app.get_description() + "\n\nusage: heddle VERB [OPTIONS] ...\n\nverbs:\n";
    for (const Verb& verb : verbs()) {
      if (!verb.hidden) out += fmt::format("  {:<12} {}\n", verb.name, verb.summary);
    }
    out += "\noptions:\n" + option_lines(app);
    out += "\n`heddle VERB --help` describes a verb and shows an example.\n";
    out += "exit status: 0 nothing new, 1 findings, 2 wrong use or error, 3 a replay diverged\n";
    return out;
  }
};

struct Command {
  CLI::App app{"Finds, explains and reproduces atomicity violations in C and C++ programs.",
               "heddle"};
  std::function<int()> run;  // of the verb that was given
};

std::unique_ptr<Command> make_command() {
  auto command = std::make_unique<Command>();
  CLI::App& app = command->app;
  app.formatter(std::make_shared<Help>());
  app.set_help_flag("-h,--help", "this text");
  app.set_version_flag("--version", "heddle " HEDDLE_VERSION, "the version");
  app.require_subcommand(1);
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    sub->set_help_flag("-h,--help", "this text");
    if (verb.hidden) sub->group("");
    sub->callback([run = verb.declare(*sub), command = command.get()] { command->run = run; });
  }
  return command;
}

int wrong_use(const std::string& where, const std::string& what) {
  fmt::print(stderr, "{}: {}; see `{} --help`\n", where, what, where);
  return kUsage;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format(", did you mean `{}`?", meant);
}

int unknown_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) names.emplace_back(verb.name);
  }
  return wrong_use("heddle", fmt::format("there is no verb `{}`{}", word, suggestion(word, names)));
}

int unexpected(const CLI::App& app, const std::string& where, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') {
    return wrong_use(where, fmt::format("unexpected argument `{}`", argument));
  }
  const std::string option = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const OptionFacts& o : options_of(app)) {
    if (o.positional) continue;
    names.insert(names.end(), o.names.begin(), o.names.end());
  }
  return wrong_use(where, fmt::format("unknown option `{}`{}", option, suggestion(option, names)));
}

// CLI11's messages in our form: one line that says what and where.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  const CLI::App* last = &app;
  std::string where = "heddle";
  for (std::vector<CLI::App*> next = given; !next.empty(); next = last->get_subcommands()) {
    last = next.front();
    where += " " + last->get_name();
  }
  const CLI::App& at = *last;
  // A misspelt option explains more than what is missing because of it.
  std::vector<std::string> extras = at.remaining();
  if (extras.empty()) extras = app.remaining(true);
  for (const std::string& extra : extras) {
    if (extra.size() > 1 && extra[0] == '-') return unexpected(at, where, extra);
  }
  const bool has_extras =
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !extras.empty();
  if (has_extras) return unexpected(at, where, extras.front());
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));
  constexpr std::string_view kRequired = " is required";
  if (what.size() > kRequired.size() &&
      what.compare(what.size() - kRequired.size(), kRequired.size(), kRequired) == 0) {
    what = what.substr(0, what.size() - kRequired.size()) + " is missing";
  }
  while (!what.empty() && what.back() == '.') what.pop_back();
  return wrong_use(where, what);
}

// A file that is opened must not become standard output because the caller closed that. What is
// closed is opened in a way that using it fails as before.
void keep_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int run_command(int argc, char** argv) {
  keep_standard_descriptors();
  const std::unique_ptr<Command> command = make_command();
  if (argc < 2) {
    fmt::print(stderr, "{}", command->app.help());
    return kUsage;
  }
  const std::string first = argv[1];
  if (first[0] != '-' && find_verb(first) == nullptr) return unknown_verb(first);
  try {
    command->app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return command->app.exit(done);
  } catch (const CLI::ParseError& error) {
    return explain(command->app, error);
  }
  return command->run ? command->run() : static_cast<int>(kUsage);
}

}  // namespace heddle::cli
