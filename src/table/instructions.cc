#include "table/instructions.h"

#include "table/native_run.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle::table {
namespace {

constexpr unsigned kTimeout = 120;  // seconds; callgrind is 50 times slower than the processor

bool take(std::string_view* line, std::string_view prefix) {
  if (!line->starts_with(prefix)) return false;
  line->remove_prefix(prefix.size());
  return true;
}

// The cost on a line `POSITION COST`.
std::uint64_t cost_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  std::uint64_t cost = 0;
  if (space != std::string_view::npos) {
    std::from_chars(line.data() + space + 1, line.data() + line.size(), cost);
  }
  return cost;
}

bool is_cost(std::string_view line) {
  return !line.empty() && std::string_view("0123456789+-*").find(line[0]) != std::string_view::npos;
}

std::string find_valgrind() {
  const char* const path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/valgrind";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace

Result<Instructions> parse_callgrind(std::string_view text, std::string_view program) {
  // Objects are named once, `ob=(3) /lib/libc.so.6`, by their own costs or by a call into them
  // (cob=), and by
  // `(3)` from then on. The line after `calls=` is what the called function cost, counted there
  // already.
  std::map<std::string, std::string, std::less<>> names;
  Instructions out;
  bool own = false, called = false, complete = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const bool callee = take(&line, "cob=");
    if (callee || take(&line, "ob=")) {
      const std::size_t end = line.find(')');
      if (end == std::string_view::npos) return Error{"callgrind wrote an object without a number"};
      const std::string number(line.substr(0, end));
      if (end + 2 < line.size()) names[number] = line.substr(end + 2);
      if (!callee) own = names[number] == program;
    } else if (line.starts_with("calls=")) {
      called = true;
    } else if (take(&line, "totals:")) {
      complete = true;
    } else if (is_cost(line)) {
      const std::uint64_t cost = called ? 0 : cost_of(line);
      called = false;
      out.all += cost;
      out.own += own ? cost : 0;
    }
  }
  if (!complete || out.own == 0) {
    return Error{fmt::format("callgrind wrote no instructions of {}", program)};
  }
  return out;
}

Result<std::optional<Instructions>> count_instructions(const std::string& program) {
  const std::string valgrind = find_valgrind();
  if (valgrind.empty()) return std::optional<Instructions>();
  const std::string path = std::filesystem::canonical(program).string();
  std::string file = (std::filesystem::temp_directory_path() / "heddle-callgrind-XXXXXX").string();
  const int fd = mkstemp(file.data());
  if (fd < 0) return Error{fmt::format("{}: cannot be made", file)};
  close(fd);
  const Result<int> status = native_run(
      {valgrind, "--tool=callgrind", "--fair-sched=try", "--callgrind-out-file=" + file, path},
      kTimeout);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  if (!status.ok()) return status.error();
  Result<Instructions> counted = parse_callgrind(text.str(), path);
  if (!counted.ok()) return counted.error();
  return std::optional<Instructions>(*counted);
}

}  // namespace heddle::table
