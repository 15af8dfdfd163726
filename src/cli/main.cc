// The command `heddle`: a table of verbs.
#include "cli/control.h"
#include "cli/learn.h"
#include "cli/record.h"
#include "cli/verb.h"
#include "cli/verb_check.h"
#include "cli/verb_log.h"
#include "cli/verb_units.h"

#include <cstdio>
#include <string>
#include <vector>

namespace heddle::cli {

std::span<const Verb> verbs() {
  static const std::vector<Verb> table = {
      kRecordVerb, kCheckVerb, kUnitsVerb,   kLogVerb,
      kReplayVerb, kTryVerb,   kCollectVerb, kLearnVerb,
  };
  return table;
}

}  // namespace heddle::cli

int main(int argc, char** argv) {
  using namespace heddle::cli;
  CLI::App app("Finds, explains and reproduces atomicity violations in C and C++ programs.",
               "heddle");
  app.require_subcommand(1);
  int status = kNothingNew;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    std::function<int()> run = verb.declare(*sub);
    sub->callback([run = std::move(run), &status] { status = run(); });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kNothingNew : kUsage;
  }
  return status;
}
