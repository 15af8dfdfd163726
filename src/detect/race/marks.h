// What the user said about frontier races: which pairs are synchronisation, which are data.
//
// The file is text, one pair a line, fields separated by tabs, made by the first pass and edited by
// hand:
//
//     # heddle frontier 1
//     ?	12	write	producer	queue.c:14:3	read	consumer	queue.c:40:7
//     ready
//
// mark (`sync`, `data` or `?`), how often it was seen, then kind, function and place of both
// accesses, and the variable. A pair without a verdict counts as data. Places, not numbers of this
// run, identify accesses, so marks made on one run serve the next.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::race {

enum class Mark : std::uint8_t { kUnknown, kSync, kData };

struct MarkedPlace {
  std::string kind;      // "write", "acquire", …
  std::string function;  // may be empty
  std::string place;     // file:line:column
  auto operator<=>(const MarkedPlace&) const = default;
};

struct MarkedPair {
  Mark mark{};
  std::uint64_t count{};
  MarkedPlace first;
  MarkedPlace second;
  std::string variable;
};

class Marks {
 public:
  static Result<Marks> load(const std::string& path);
  // `name` stands for the file in error messages.
  static Result<Marks> parse(std::string_view content, const std::string& name);

  std::string to_text() const;
  Status save(const std::string& path) const;

  // Is the access part of a pair that was marked as synchronisation?
  bool is_sync(const MarkedPlace& place) const { return sync_.contains(place); }

  void add(MarkedPair pair);
  const std::vector<MarkedPair>& pairs() const { return pairs_; }
  std::size_t unmarked() const;

 private:
  std::vector<MarkedPair> pairs_;
  std::set<MarkedPlace> sync_;
};

}  // namespace heddle::race
