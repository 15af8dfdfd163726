// The marks at the ends of a program's lines say where its bug is (examples/README.md); a finding
// is the bug's if its accesses are at the marked lines. That is what "detected" means in every
// table.
#pragma once

#include "base/result.h"
#include "finding/finding.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace heddle::table {

class Marks {
 public:
  static Result<Marks> read(const std::string& path);
  static Marks parse(std::string_view source, std::string file_name);

  // A split pair (avio, avio-h) is the bug's if each of its lines has the mark of its role; a
  // variable without a lock (lockset), if the access that showed it is at a marked line: the
  // earlier one is often its initialisation; any other finding, if all of its accesses are at
  // marked lines.
  bool is_the_bug(const Finding& finding) const;

  const std::map<std::uint32_t, std::set<std::string>>& lines() const { return lines_; }

 private:
  std::string file_;                                      // without folders
  std::map<std::uint32_t, std::set<std::string>> lines_;  // "P", "R", "I", "bug"
};

// What makes two findings of different runs the same static one.
std::string identity(const Finding& finding);

// What a finding is about: the variable of each of its accesses.
std::string subject(const Finding& finding);

// A finding of avio-h with which exact bytes disagree.
bool in_one_line_only(const Finding& finding);

}  // namespace heddle::table
