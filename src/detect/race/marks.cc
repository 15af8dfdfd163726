#include "detect/race/marks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace heddle::race {
namespace {

constexpr std::string_view kHeader = "# heddle frontier 1";
constexpr std::array<std::string_view, 3> kMarkWords = {"?", "sync", "data"};

std::optional<Mark> mark_of(std::string_view word) {
  for (std::size_t i = 0; i < kMarkWords.size(); ++i) {
    if (kMarkWords[i] == word) return static_cast<Mark>(i);
  }
  return std::nullopt;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t tab = line.find('\t');
    out.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    line.remove_prefix(tab + 1);
  }
}

// A name that holds a tab or a line feed would break the file.
std::string clean(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

}  // namespace

Result<Marks> Marks::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("{}: cannot be read; check the name", path)};
  std::ostringstream content;
  content << file.rdbuf();
  return parse(content.str(), path);
}

Result<Marks> Marks::parse(std::string_view content, const std::string& name) {
  Marks out;
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line != kHeader) {
      return Error{fmt::format("{}:1: found `{}`, expected `{}`; is this a file of marks?", name,
                               line.substr(0, 60), kHeader)};
    }
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != 9) {
      return Error{fmt::format("{}:{}: found {} fields, expected 9, separated by tabs", name,
                               number, fields.size())};
    }
    const std::optional<Mark> mark = mark_of(fields[0]);
    if (!mark) {
      return Error{
          fmt::format("{}:{}: found `{}`, expected sync, data or ?", name, number, fields[0])};
    }
    MarkedPair pair;
    pair.mark = *mark;
    std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), pair.count);
    const auto place = [&](std::size_t at) {
      return MarkedPlace{std::string(fields[at]), std::string(fields[at + 1]),
                         std::string(fields[at + 2])};
    };
    pair.first = place(2);
    pair.second = place(5);
    pair.variable = fields[8];
    out.add(std::move(pair));
  }
  return out;
}

std::string Marks::to_text() const {
  std::string out = fmt::format(
      "{}\n# Write sync or data in place of ?, then run again with this file.\n", kHeader);
  for (const MarkedPair& pair : pairs_) {
    const auto& [mark, count, a, b, variable] = pair;
    out += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                       kMarkWords[static_cast<std::size_t>(mark)], count, clean(a.kind),
                       clean(a.function), clean(a.place), clean(b.kind), clean(b.function),
                       clean(b.place), clean(variable));
  }
  return out;
}

Status Marks::save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << to_text();
  file.close();
  if (!file) {
    return Error{fmt::format("{}: cannot be written; check the folder and the space left", path)};
  }
  return Done{};
}

void Marks::add(MarkedPair pair) {
  if (pair.mark == Mark::kSync) {
    sync_.insert(pair.first);
    sync_.insert(pair.second);
  }
  pairs_.push_back(std::move(pair));
}

std::size_t Marks::unmarked() const {
  return static_cast<std::size_t>(
      std::count_if(pairs_.begin(), pairs_.end(),
                    [](const MarkedPair& pair) { return pair.mark == Mark::kUnknown; }));
}

}  // namespace heddle::race
