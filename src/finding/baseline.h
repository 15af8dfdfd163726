// A baseline: the findings that were there before, by fingerprint. Fingerprints hold no line
// numbers, so a baseline survives edits elsewhere in the file.
//
// The file is text, one finding a line, sorted, so that it can be kept under version control and
// merged: the fingerprint, then for people the kind of finding and what it is about.
//
//     # heddle baseline 1
//     3f0c9d2e11aa4b77  data race on `stock`: write – read, sell() and audit()
#pragma once

#include "base/result.h"
#include "finding/finding.h"

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

class Baseline {
 public:
  static Result<Baseline> load(const std::string& path);
  // `name` stands for the file in error messages.
  static Result<Baseline> parse(std::string_view content, const std::string& name);

  bool contains(const Finding& finding) const { return known_.contains(finding.fingerprint); }
  std::size_t size() const { return known_.size(); }

 private:
  std::set<std::string, std::less<>> known_;
};

std::string baseline_of(std::span<const Finding> findings);

// Through a temporary file next to it: a reader sees the old baseline or the new one.
Status write_baseline(const std::string& path, std::span<const Finding> findings);

}  // namespace heddle
