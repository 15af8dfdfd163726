#include "finding/suppressions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What an entry's type says about findings.
struct Type {
  std::string_view name;
  std::optional<FindingKind> kind;  // none: every kind
  bool matches_nothing = false;     // ThreadSanitizer's, about what Heddle does not report
  bool innermost_only = false;
};
constexpr std::array kTypes = {
    Type{"race", FindingKind::kDataRace},
    Type{"race_top", FindingKind::kDataRace, false, true},
    Type{"atomicity", FindingKind::kAtomicityViolation},
    Type{"lockset", FindingKind::kInconsistentLocking},
    Type{"serializability", FindingKind::kNotSerializable},
    Type{"deadlock", FindingKind::kDeadlock},
    Type{"any", std::nullopt},
    Type{"pair", std::nullopt},
    Type{"thread", std::nullopt, true},
    Type{"mutex", std::nullopt, true},
    Type{"signal", std::nullopt, true},
    Type{"called_from_lib", std::nullopt, true},
};

const Type* type_of(std::string_view name) {
  const auto at =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return t.name == name; });
  return at == kTypes.end() ? nullptr : &*at;
}

bool matches_place(const Place& place, std::string_view pattern) {
  return matches_template(pattern, place.function) || matches_template(pattern, place.file);
}

bool matches_step(const Step& step, std::string_view pattern, bool innermost_only) {
  if (matches_place(step.place, pattern)) return true;
  if (innermost_only) return !step.stack.empty() && matches_place(step.stack[0], pattern);
  return std::any_of(step.stack.begin(), step.stack.end(),
                     [&](const Place& place) { return matches_place(place, pattern); });
}

bool matches_pair(const Finding& finding, const Suppressions::Entry& entry) {
  for (const Step& first : finding.steps) {
    if (first.role.empty() || !matches_step(first, entry.pattern, false)) continue;
    for (const Step& second : finding.steps) {
      if (&second == &first || second.role.empty()) continue;
      if (matches_step(second, entry.second, false)) return true;
    }
  }
  return false;
}

bool matches(const Finding& finding, const Suppressions::Entry& entry) {
  const Type* const type = type_of(entry.type);
  if (type == nullptr || type->matches_nothing) return false;
  if (type->kind && *type->kind != finding.kind) return false;
  if (entry.type == "pair") return matches_pair(finding, entry);
  for (const VariableName& variable : finding.variables) {
    if (matches_template(entry.pattern, variable.name)) return true;
  }
  return std::any_of(finding.steps.begin(), finding.steps.end(), [&](const Step& step) {
    return !step.role.empty() && matches_step(step, entry.pattern, type->innermost_only);
  });
}

bool expired(const Suppressions::Entry& entry, const Day& day) {
  return entry.until && *entry.until < day;
}

}  // namespace

std::optional<Day> parse_day(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t digits) -> int {
    int out = 0;
    const char* const first = text.data() + at;
    const auto [end, error] = std::from_chars(first, first + digits, out);
    return error == std::errc() && end == first + digits ? out : -1;
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int day = number(8, 2);
  if (year < 0 || month < 0 || day < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return Day{year, static_cast<unsigned>(month), static_cast<unsigned>(day)};
}

Day today() {
  const std::chrono::year_month_day date{
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return {static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day())};
}

// Greedy: the parts between the stars are found from left to right, each as early as possible; only
// a last part bound by $ must be the end.
bool matches_template(std::string_view pattern, std::string_view text) {
  if (text.empty() || pattern.empty()) return false;
  bool bound = pattern.front() == '^';
  if (bound) pattern.remove_prefix(1);
  const bool bound_at_end = !pattern.empty() && pattern.back() == '$';
  if (bound_at_end) pattern.remove_suffix(1);
  while (true) {
    const std::size_t star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    const bool last = star == std::string_view::npos;
    if (last && bound_at_end) {
      if (bound) return text == part;
      return text.ends_with(part);
    }
    const std::size_t at =
        bound ? (text.starts_with(part) ? 0 : std::string_view::npos) : text.find(part);
    if (at == std::string_view::npos) return false;
    if (last) return true;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
    bound = false;
  }
}

Status Suppressions::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("{}: cannot be read; check the name", path)};
  std::ostringstream content;
  content << file.rdbuf();
  add(content.str(), path);
  return Done{};
}

void Suppressions::add(std::string_view content, const std::string& name) {
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    add_line(trim(content.substr(0, end)), name, number);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
  }
}

void Suppressions::add_line(std::string_view line, const std::string& name, std::size_t number) {
  if (line.empty() || line.front() == '#') return;
  const auto problem = [&](std::string_view what) {
    problems_.push_back(fmt::format("{}:{}: {}; the line is skipped", name, number, what));
  };
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    return problem(fmt::format("found `{}`, expected type:pattern", line));
  }
  Entry entry;
  entry.file = name;
  entry.line = number;
  entry.text = line;
  entry.type = trim(line.substr(0, colon));
  if (type_of(entry.type) == nullptr) {
    return problem(fmt::format("unknown type `{}`", entry.type));
  }
  std::string_view rest = trim(line.substr(colon + 1));
  if (const std::size_t until = rest.rfind("until=");
      until != std::string_view::npos && until > 0 && rest[until - 1] == ' ') {
    const std::string_view day = rest.substr(until + 6);
    entry.until = parse_day(day);
    if (!entry.until) {
      return problem(fmt::format("`{}` is not a day; write until=YYYY-MM-DD", day));
    }
    rest = trim(rest.substr(0, until));
  }
  if (entry.type == "pair") {
    const std::size_t bar = rest.find('|');
    if (bar == std::string_view::npos) return problem("a pair is written pair:first|second");
    entry.second = trim(rest.substr(bar + 1));
    rest = trim(rest.substr(0, bar));
    if (entry.second.empty()) return problem("the second pattern is empty");
  }
  if (rest.empty()) return problem("the pattern is empty");
  entry.pattern = rest;
  entries_.push_back(std::move(entry));
}

bool Suppressions::suppresses(const Finding& finding, const Day& day) {
  for (Entry& entry : entries_) {
    if (expired(entry, day) || !matches(finding, entry)) continue;
    ++entry.used;
    return true;
  }
  return false;
}

std::vector<std::string> Suppressions::unused(const Day& day) const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) {
    if (expired(entry, day)) {
      out.push_back(fmt::format("{}:{}: `{}` has expired", entry.file, entry.line, entry.text));
    } else if (entry.used == 0 && !type_of(entry.type)->matches_nothing) {
      out.push_back(fmt::format("{}:{}: `{}` matched nothing", entry.file, entry.line, entry.text));
    }
  }
  return out;
}

}  // namespace heddle
