// The report on a terminal: an interleaving as the papers draw it.
//
// A column per thread, time downwards, the text of the source lines, the accesses that matter
// marked by their roles, and a bracket around the stretch that should have been one step. Findings
// are printed in the order given; nothing is decided here.
#pragma once

#include "finding/finding.h"

#include <span>
#include <string>
#include <vector>

namespace heddle::report {

struct TerminalOptions {
  bool colour = false;
  unsigned width = 100;
  bool stacks = true;
  std::vector<std::string> source_roots{};  // see report/source_text.h
};

std::string terminal(std::span<const Finding> findings, const TerminalOptions& options = {});

// Colour and width that fit the file descriptor: colour only on a terminal, and not if NO_COLOR is
// set.
TerminalOptions terminal_options_for(int descriptor);

}  // namespace heddle::report
