#include "report/source_text.h"

#include "base/printable.h"

#include <filesystem>
#include <fstream>

namespace heddle::report {
namespace {

constexpr std::uintmax_t kLargestFile = 16u << 20;

bool is_readable(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         std::filesystem::file_size(path, error) <= kLargestFile && !error;
}

// Every run of blanks is one: alignment means nothing out of context.
std::string trimmed(const std::string& text) {
  std::string out;
  bool blank = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r') {
      blank = true;
      continue;
    }
    if (blank && !out.empty()) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

// The marks in our own examples, by which tables are checked, would give the story away.
std::string without_marks(std::string text) {
  const std::size_t mark = text.find("// heddle:");
  if (mark == std::string::npos) return text;
  text.erase(mark);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

const std::string& SourceText::line(const std::string& file, std::uint32_t number) {
  static const std::string kNothing;
  if (file.empty() || number == 0) return kNothing;
  const std::vector<std::string>& all = lines(file);
  return number <= all.size() ? all[number - 1] : kNothing;
}

const std::vector<std::string>& SourceText::lines(const std::string& file) {
  const auto [at, is_new] = files_.try_emplace(file);
  if (!is_new) return at->second;
  const std::string path = find(file);
  if (path.empty()) return at->second;
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);)
    at->second.push_back(printable(without_marks(trimmed(text))));
  return at->second;
}

std::string SourceText::find(const std::string& file) const {
  if (is_readable(file)) return file;
  for (const std::string& root : roots_) {
    for (std::size_t from = 0;;) {
      const std::string candidate = root + "/" + file.substr(from);
      if (is_readable(candidate)) return candidate;
      const std::size_t slash = file.find('/', from);
      if (slash == std::string::npos) break;
      from = slash + 1;
    }
  }
  return {};
}

}  // namespace heddle::report
