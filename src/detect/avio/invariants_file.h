// The learned file (.inv): JSON lines, made to be read, diffed and merged.
//
//   {"heddle":"invariants","version":1,"program":"shop","threshold":0}
//   {"run":"8c…","build":"4e…","command":"./shop 3","seed":"1"}
//   {"failed":"77…"}
//   {"site":"01ab…","kind":"read","function":"sell","place":"shop.cc:12:7","variable":"stock",
//    "executed":"0-99","split":{"02cd…":"3,17-19"}}
//
// Runs and sites are sorted. `executed` and `split` name runs by their position among the "run"
// lines; a split is listed under the key of its P. A file is refused with a reason when it is not
// such a file, is of another version, or is damaged.
#pragma once

#include "base/result.h"
#include "detect/avio/invariants.h"

#include <string>
#include <string_view>

namespace heddle::avio {

inline constexpr int kInvariantsVersion = 2;

std::string print_invariants(const Invariants& invariants);

// `name` stands for the file in error messages.
Result<Invariants> parse_invariants(std::string_view text, std::string_view name);

Result<Invariants> read_invariants(const std::string& path);
Status write_invariants(const Invariants& invariants, const std::string& path);

}  // namespace heddle::avio
