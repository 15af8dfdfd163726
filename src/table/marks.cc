#include "table/marks.h"

#include "detect/avio/avio_h.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace heddle::table {
namespace {

constexpr std::string_view kMark = "// heddle: ";

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

bool by_roles(const Finding& finding) {
  return std::any_of(finding.detectors.begin(), finding.detectors.end(),
                     [](const std::string& name) { return name == "avio" || name == "avio-h"; });
}

}  // namespace

Result<Marks> Marks::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{fmt::format("{}: cannot be read", path)};
  std::stringstream text;
  text << file.rdbuf();
  return parse(text.str(), file_name(path));
}

Marks Marks::parse(std::string_view source, std::string name) {
  Marks out;
  out.file_ = std::move(name);
  std::uint32_t number = 0;
  while (!source.empty()) {
    std::string_view line = source.substr(0, source.find('\n'));
    source.remove_prefix(std::min(source.size(), line.size() + 1));
    ++number;
    const std::size_t at = line.find(kMark);
    if (at == std::string_view::npos) continue;
    std::istringstream words{std::string(line.substr(at + kMark.size()))};
    for (std::string word; words >> word;) out.lines_[number].insert(word);
  }
  return out;
}

bool Marks::is_the_bug(const Finding& finding) const {
  const bool roles = by_roles(finding);
  std::size_t accesses = 0;
  for (const Step& step : finding.steps) {
    if (step.role.empty()) continue;
    if (step.role == "1" && finding.kind == FindingKind::kInconsistentLocking) continue;
    const auto marked = lines_.find(step.place.line);
    if (marked == lines_.end() || file_name(step.place.file) != file_) return false;
    if (roles && !marked->second.contains(step.role)) return false;
    ++accesses;
  }
  return accesses > 0;
}

std::string identity(const Finding& finding) {
  std::string out = finding.summary;
  for (const Step& step : finding.steps) {
    if (step.role.empty()) continue;
    out += fmt::format(" {} {}:{}:{} {}", step.role, file_name(step.place.file), step.place.line,
                       step.place.column, static_cast<int>(step.kind));
  }
  return out;
}

std::string subject(const Finding& finding) {
  std::string out;
  for (const Step& step : finding.steps) {
    if (step.role.empty()) continue;
    const std::string& name = step.variable.name;
    // An address says nothing that another run would confirm.
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", step.role,
                       name.starts_with("0x") ? "a variable without a name" : name);
  }
  return out;
}

bool in_one_line_only(const Finding& finding) {
  return std::find(finding.notes.begin(), finding.notes.end(), avio::kOneLineOnly) !=
         finding.notes.end();
}

}  // namespace heddle::table
