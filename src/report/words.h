// The words that all reports share: names of kinds and labels, for people and for machines.
#pragma once

#include "finding/finding.h"

#include <string>
#include <string_view>

namespace heddle::report {

std::string name(FindingKind kind);         // "atomicity-violation"
std::string_view name(FindingLabel label);  // "observed"
std::string_view name(EventKind kind);      // "read"
std::string_view name(MemoryOrder order);   // "seq_cst"; "plain" when not atomic

// What a step does, where its line cannot be shown: "reads `stock`", "lets go of m".
std::string deed(const Step& step);

// "= 1" for what was read, "writes 0" (or, after a verb of its own, "= 0") for what was written;
// empty when unknown.
std::string value(const Step& step, bool with_verb = true);

// Names, alone or in a sentence, with an ellipsis for long template arguments.
std::string short_name(std::string_view text);

// Without result, parameters, unnamed namespaces and long template arguments: "Shop::sell" for
// "(anonymous namespace)::Shop::sell(int)".
std::string short_function(std::string_view name);

// "shop.cc:12", without folders; empty when the line is unknown.
std::string place(const Place& place);

}  // namespace heddle::report
