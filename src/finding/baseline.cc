#include "finding/baseline.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr std::string_view kHeader = "# heddle baseline 1";

std::string in_one_line(const Finding& finding) {
  std::string out(title(finding.kind));
  if (!finding.variables.empty() && !finding.variables[0].name.starts_with("0x")) {
    out += fmt::format(" on `{}`", finding.variables[0].name);
  }
  if (!finding.summary.empty()) out += ": " + finding.summary;
  std::vector<std::string> functions;
  for (const Step& step : finding.steps) {
    if (step.role.empty() || step.place.function.empty()) continue;
    if (std::find(functions.begin(), functions.end(), step.place.function) == functions.end()) {
      functions.push_back(step.place.function);
    }
  }
  if (!functions.empty()) out += fmt::format(", {}", fmt::join(functions, " and "));
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

bool is_fingerprint(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<Baseline> Baseline::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{fmt::format("{}: cannot be read; make a baseline with --write-baseline", path)};
  }
  std::ostringstream content;
  content << file.rdbuf();
  return parse(content.str(), path);
}

Result<Baseline> Baseline::parse(std::string_view content, const std::string& name) {
  Baseline out;
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line != kHeader) {
      return Error{fmt::format("{}:1: found `{}`, expected `{}`; is this a baseline?", name,
                               line.substr(0, 60), kHeader)};
    }
    if (line.empty() || line.front() == '#') continue;
    const std::string_view fingerprint = line.substr(0, line.find(' '));
    if (!is_fingerprint(fingerprint)) {
      return Error{
          fmt::format("{}:{}: found `{}`, expected 16 hexadecimal digits; write it anew "
                      "with --write-baseline",
                      name, number, fingerprint.substr(0, 60))};
    }
    out.known_.emplace(fingerprint);
  }
  return out;
}

std::string baseline_of(std::span<const Finding> findings) {
  std::map<std::string, std::string> lines;
  for (const Finding& finding : findings) {
    lines.emplace(finding.fingerprint, in_one_line(finding));
  }
  std::string out(kHeader);
  out += '\n';
  for (const auto& [fingerprint, text] : lines) out += fmt::format("{}  {}\n", fingerprint, text);
  return out;
}

Status write_baseline(const std::string& path, std::span<const Finding> findings) {
  const std::string temporary = path + ".new";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << baseline_of(findings);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    return Error{fmt::format("{}: cannot be written; check the folder and the space left", path)};
  }
  return Done{};
}

}  // namespace heddle
