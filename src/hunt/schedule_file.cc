#include "hunt/schedule_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace heddle::hunt {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+,:@%";

// Takes words off the front of a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view next() {
    const std::size_t begin = std::min(rest_.find_first_not_of(' '), rest_.size());
    rest_.remove_prefix(begin);
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  std::string_view rest() const {
    return rest_.empty() || rest_[0] != ' ' ? rest_ : rest_.substr(1);
  }

 private:
  std::string_view rest_;
};

template <typename T>
bool to_number(std::string_view text, T* value, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && !text.empty();
}

bool parse_decision(Words words, Decision* decision) {
  const std::string_view position = words.next();
  const std::size_t dot = position.find('.');
  if (dot == std::string_view::npos) return false;
  decision->kind = words.next();
  const std::string_view chosen = words.next();
  decision->place = words.next();
  return to_number(position.substr(0, dot), &decision->thread) &&
         to_number(position.substr(dot + 1), &decision->step) && !decision->kind.empty() &&
         to_number(chosen, &decision->chosen);
}

// The inverse of quote_command.
std::vector<std::string> split_command(std::string_view text) {
  std::vector<std::string> command;
  std::string word;
  bool in_word = false;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') {
      quoted = !quoted;
      in_word = true;
    } else if (c == '\\' && !quoted && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (c == ' ' && !quoted) {
      if (in_word) command.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) command.push_back(std::move(word));
  return command;
}

}  // namespace

std::string quote_command(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) {
      if (c == '\'') {
        text += "'\\''";
      } else {
        text += c;
      }
    }
    text += '\'';
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text, const std::string& name) {
  Schedule schedule;
  text = text.substr(0, text.find('\0'));  // a run that was killed leaves zeros behind
  std::size_t number = 0;
  bool versioned = false;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const auto bad = [&](std::string_view wanted) {
      return Error{fmt::format("{}:{}: `{}` is not {}", name, number, line, wanted)};
    };
    Words words(line);
    const std::string_view key = words.next();
    if (!versioned) {
      if (key != "heddle-schedule") {
        return Error{
            fmt::format("{} is not a schedule: it does not start with `heddle-schedule`", name)};
      }
      if (words.next() != "1") {
        return Error{
            fmt::format("{}: written by another version of Heddle (line `{}`)", name, line)};
      }
      versioned = true;
    } else if (key == "program") {
      schedule.program = words.rest();
    } else if (key == "command") {
      schedule.command = split_command(words.rest());
    } else if (key == "build-id") {
      schedule.build_id = words.rest();
    } else if (key == "points") {
      schedule.points = words.rest();
    } else if (key == "strategy") {
      schedule.strategy = words.next();
      if (words.next() != "seed" || !to_number(words.next(), &schedule.seed)) {
        return bad("`strategy NAME seed NUMBER`");
      }
    } else if (key == "at") {
      Decision decision;
      if (!parse_decision(words, &decision)) return bad("`at THREAD.STEP KIND THREAD [PLACE]`");
      schedule.decisions.push_back(std::move(decision));
    } else if (key == "end") {
      Schedule::End end;
      const bool points = to_number(words.next(), &end.points) && words.next() == "points";
      if (!points || words.next() != "hash" || !to_number(words.next(), &end.hash, 16)) {
        return bad("`end NUMBER points hash HEX`");
      }
      schedule.end = end;
    } else {
      return bad("a line of a schedule");
    }
  }
  if (!versioned) return Error{fmt::format("{} is empty: not a schedule", name)};
  return schedule;
}

std::string print_schedule(const Schedule& schedule) {
  std::string text = "heddle-schedule 1\n";
  text += fmt::format("program {}\n", schedule.program);
  if (!schedule.command.empty())
    text += fmt::format("command {}\n", quote_command(schedule.command));
  text += fmt::format("build-id {}\n", schedule.build_id);
  text += fmt::format("points {}\n", schedule.points);
  text += fmt::format("strategy {} seed {}\n", schedule.strategy, schedule.seed);
  for (const Decision& decision : schedule.decisions) {
    text += fmt::format("at {}.{} {} {}{}{}\n", decision.thread, decision.step, decision.kind,
                        decision.chosen, decision.place.empty() ? "" : " ", decision.place);
  }
  if (schedule.end.has_value()) {
    text += fmt::format("end {} points hash {:x}\n", schedule.end->points, schedule.end->hash);
  }
  return text;
}

Result<Schedule> read_schedule(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_schedule(text, path);
}

Status write_schedule(const Schedule& schedule, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << print_schedule(schedule);
  file.close();
  if (!file) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  return Done{};
}

}  // namespace heddle::hunt
