// A verb of the command `heddle`: one file each, one line each in the table in main.cc.
//
// `declare` puts the verb's options on its CLI11 subcommand and returns what to run once they are
// parsed; the value returned is the exit status (cli/exit_status.h). Help, man pages and shell
// completion are all made from what CLI11 then knows, so an option is described in one place.
#pragma once

#include "cli/exit_status.h"

#include <functional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>

namespace heddle::cli {

struct Verb {
  std::string_view name;
  std::string_view summary;      // one line, for the list of verbs
  std::string_view description;  // a paragraph, for --help and the man page
  std::string_view example;      // commands a reader can paste
  std::function<int()> (*declare)(CLI::App& app);
  bool hidden = false;  // not for people: in no list, without a man page
};

std::span<const Verb> verbs();

}  // namespace heddle::cli
