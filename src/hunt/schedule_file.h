// Schedule files: the decisions of a run that differ from the default schedule, as text.
//
//   heddle-schedule 1
//   program shop
//   command ./shop 3 'two words'
//   build-id 5c0fe1…
//   points shared
//   strategy random seed 117
//   at 2.14 unlock 1 shop+0x1249
//   at 1.20 wake 3
//   end 231 points hash 9c21f00d12345678
//
// `at T.N KIND U PLACE`: when thread T is at its N-th step, before an operation of that kind at
// that place, thread U runs (for `wake`: is woken) instead of whoever would. Lines may be removed
// or added by hand; `#` starts a comment line; `end` is what a run of the whole schedule comes to,
// and may be left out. docs/control.md has the rest.
//
// The runtime has a reader and a writer of its own (runtime/schedule.h), since it cannot use this
// one.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::hunt {

struct Decision {
  std::uint32_t thread = 0;
  std::uint64_t step = 0;
  std::string kind;
  std::uint32_t chosen = 0;
  std::string place;  // "shop+0x1249", or empty

  bool operator==(const Decision&) const = default;
};

struct Schedule {
  struct End {
    std::uint64_t points = 0;
    std::uint64_t hash = 0;
    bool operator==(const End&) const = default;
  };

  std::string program;
  std::vector<std::string> command;
  std::string build_id;
  std::string points = "sync";  // which accesses are scheduling points
  std::string strategy;
  std::uint64_t seed = 0;
  std::vector<Decision> decisions;
  std::optional<End> end;

  bool operator==(const Schedule&) const = default;
};

Result<Schedule> parse_schedule(std::string_view text, const std::string& name);
std::string print_schedule(const Schedule& schedule);

Result<Schedule> read_schedule(const std::string& path);
Status write_schedule(const Schedule& schedule, const std::string& path);

// A command line as a shell would take it.
std::string quote_command(const std::vector<std::string>& command);

}  // namespace heddle::hunt
