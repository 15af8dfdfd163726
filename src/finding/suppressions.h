// Suppressions: findings that the user does not want to see.
//
// ThreadSanitizer's files load unchanged. A line is `type:pattern`; blank lines and lines that
// start with `#` are ignored. The pattern is matched against the function and the file
// of every frame of every stack of the finding, and against the names of its variables; it may
// stand anywhere in the name, `*` matches any text, `^` and `$` bind to the beginning and the end.
//
// What Heddle adds:
//
//   pair:first|second         both patterns, on the stacks of two different accesses of the finding
//   any:pattern               findings of every kind
//   race:pattern until=2026-12-31      not in force after that day
//
// Types: race, atomicity, lockset, serializability, deadlock; and `race_top`, which looks at the
// innermost frame only, and ThreadSanitizer's others (called_from_lib, thread, mutex, signal …),
// which are accepted and match nothing here. A line that cannot be understood is a Problem with
// file and line, and is skipped; the rest of the file counts.
#pragma once

#include "base/result.h"
#include "finding/finding.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// A day of the calendar; compares by time.
struct Day {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  auto operator<=>(const Day&) const = default;
};
std::optional<Day> parse_day(std::string_view text);  // 2026-12-31
Day today();

// ThreadSanitizer's template: anywhere in `text` unless bound by ^ and $; * matches any text.
bool matches_template(std::string_view pattern, std::string_view text);

class Suppressions {
 public:
  struct Entry {
    std::string file;
    std::size_t line = 0;
    std::string text;  // the line as written, without comment and blanks
    std::string type;
    std::string pattern;
    std::string second;  // of a pair, else empty
    std::optional<Day> until;
    std::uint64_t used = 0;  // findings it suppressed
  };

  // Adds the entries of a file; problems of single lines are in problems(). An error when the file
  // cannot be read.
  Status load(const std::string& path);
  void add(std::string_view content, const std::string& name);

  // Does an entry that is in force on `day` match? Counts its use.
  bool suppresses(const Finding& finding, const Day& day);

  // One line each: `file:line: what is wrong`.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Entries that matched nothing although they were in force, and those that have expired.
  std::vector<std::string> unused(const Day& day) const;

 private:
  void add_line(std::string_view line, const std::string& name, std::size_t number);

  std::vector<Entry> entries_;
  std::vector<std::string> problems_;
};

}  // namespace heddle
