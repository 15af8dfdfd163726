#include "report/terminal.h"

#include "base/printable.h"
#include "report/source_text.h"
#include "report/words.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace heddle::report {
namespace {

// Characters, not bytes; good enough for source lines.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  std::string out;
  std::size_t used = 0;
  for (const char c : text) {
    const bool starts = (c & 0xc0) != 0x80;
    if (starts && used + 1 >= width) break;
    used += starts ? 1 : 0;
    out += c;
  }
  return out + "…";
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t used = width_of(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

class Printer {
 public:
  explicit Printer(const TerminalOptions& options)
      : options_(options), source_(options.source_roots) {}

  void print(const Finding& finding) {
    headline(finding);
    steps(finding);
    for (const std::string& note : finding.notes) out_ += "  " + note + "\n";
    if (options_.stacks) stacks(finding);
    if (!finding.replay.empty()) out_ += fmt::format("  replay   {}\n", finding.replay);
    out_ += "\n";
  }

  void closing(std::span<const Finding> findings) {
    const auto unlearned = std::count_if(findings.begin(), findings.end(), [](const Finding& f) {
      return f.label == FindingLabel::kUnlearned;
    });
    if (unlearned == 0) return;
    out_ += fmt::format(
        "{} unlearned: nothing is known about passing runs, and most of these are harmless.\n"
        "To learn which pairs are never split, and see only their violations:\n"
        "  heddle learn -n 100 -o app.inv -- PROGRAM, then again with --invariants app.inv\n",
        unlearned == 1 ? "1 finding is" : fmt::format("{} findings are", unlearned));
  }

  std::string take() { return std::move(out_); }

 private:
  std::string paint(std::string_view text, const char* code) const {
    if (!options_.colour) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

  void headline(const Finding& finding) {
    const bool grave = finding.label != FindingLabel::kUnlearned;
    std::string line = paint(title(finding.kind), grave ? "1;31" : "1;33");
    if (!finding.summary.empty()) line += "  " + finding.summary;
    std::string names;
    for (const VariableName& variable : finding.variables) {
      names += names.empty() ? "" : ", ";
      names += paint("`" + variable.name + "`", "1");
    }
    if (!names.empty()) line += "  on " + names;
    if (finding.variables.size() == 1) {
      const VariableName& variable = finding.variables[0];
      std::string where = variable.storage;
      const std::string declared = place(variable.declared);
      if (!declared.empty()) where += (where.empty() ? "" : ", ") + declared;
      if (!where.empty()) line += "  (" + where + ")";
    }
    out_ += line + "\n";

    std::string second = finding.in_words;
    const auto add = [&](const std::string& part) {
      second += (second.empty() ? "" : " · ") + part;
    };
    if (finding.count > 1) add(fmt::format("seen {} times", finding.count));
    std::string found_by;
    for (const std::string& detector : finding.detectors) {
      found_by += (found_by.empty() ? "" : ", ") + detector;
    }
    if (!found_by.empty()) add("found by " + found_by);
    add(std::string(name(finding.label)));
    out_ += second + "\n\n";
  }

  enum NotePlace { kBeside, kBelow };

  // What stands in a column: place, text of the line, value; the note beside it, or below where
  // that is wanted or would cost text.
  struct Cell {
    std::string line;
    std::string below;
    std::size_t width() const { return std::max(width_of(line), width_of(below)); }
  };

  Cell cell(const Step& step, std::size_t width, NotePlace wanted = kBeside) {
    const Place& line = own_line(step);
    const std::string where = place(line);
    const std::string& text = source_.line(line.file, line.line);
    const bool shows_line = is_access(step.kind) || step.note.empty() || !step.role.empty();
    std::string head = shows_line && !text.empty() ? text : deed(step);
    const std::size_t indent = where.empty() ? 0 : width_of(where) + 2;
    if (!where.empty()) head = where + "  " + head;
    const std::string number = value(step, !text.empty());
    const std::string note = is_access(step.kind) ? step.note : std::string();
    const std::string both = number + (number.empty() || note.empty() ? "" : ", ") + note;
    if (both.empty()) return {cut(head, width), ""};
    const bool fits = wanted == kBeside && width_of(head) + width_of(both) + 2 <= width;
    if (note.empty() || fits) {
      const std::size_t room = width > width_of(both) + 3 ? width - width_of(both) - 2 : width;
      return {cut(head, room) + "  " + both, ""};
    }
    const std::string below = cut(both, width > indent ? width - indent : width);
    return {cut(head, width), std::string(width > indent ? indent : 0, ' ') + below};
  }

  // How wide each column may be: what it needs, and where that is too much in all, the wide ones
  // give.
  static std::vector<std::size_t> fit(std::vector<std::size_t> wanted, std::size_t room) {
    std::size_t sum = std::accumulate(wanted.begin(), wanted.end(), std::size_t{0});
    for (; sum > room; --sum) {
      const auto widest = std::max_element(wanted.begin(), wanted.end());
      if (*widest == 0) break;
      --*widest;
    }
    return wanted;
  }

  static std::string thread_title(const Step& step) {
    if (!step.thread_name.empty())
      return fmt::format("thread {} ({})", step.thread, step.thread_name);
    return step.thread == 0 ? "thread 0 (main)" : fmt::format("thread {}", step.thread);
  }

  void steps(const Finding& finding) {
    if (finding.steps.empty()) return;
    std::vector<ThreadId> columns;
    for (const Step& step : finding.steps) {
      if (std::find(columns.begin(), columns.end(), step.thread) == columns.end()) {
        columns.push_back(step.thread);
      }
    }
    std::size_t role_width = 1;
    for (const Step& step : finding.steps) role_width = std::max(role_width, width_of(step.role));
    constexpr std::size_t kNarrowest = 28;
    const std::size_t for_columns = options_.width > 8 ? options_.width - 8 : kNarrowest;
    const std::size_t share = for_columns / columns.size();
    if (share < kNarrowest + role_width) return list(finding, role_width);

    const auto [first, last] = bracket(finding);
    const std::size_t around = role_width + 4;  // role, and the gap to the next column
    std::vector<std::size_t> wanted, needed;    // with notes beside and below
    std::vector<std::string> titles;
    for (const ThreadId thread : columns) {
      std::size_t widest = 0, narrowest = 0;
      for (const Step& step : finding.steps) {
        if (step.thread != thread) continue;
        if (titles.size() == wanted.size()) titles.push_back(thread_title(step));
        widest = std::max(widest, cell(step, for_columns - around).width());
        narrowest = std::max(narrowest, cell(step, for_columns - around, kBelow).width());
      }
      wanted.push_back(widest);
      needed.push_back(narrowest);
    }
    const std::size_t room = for_columns - std::min(for_columns, around * columns.size());
    const bool beside = std::accumulate(wanted.begin(), wanted.end(), std::size_t{0}) <= room;
    const std::vector<std::size_t> texts = beside ? wanted : fit(needed, room);
    std::vector<std::size_t> widths;
    widths.reserve(columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c)
      widths.push_back(role_width + 2 + std::max(texts[c], width_of(titles[c])));
    std::string header = std::string(5, ' ');
    for (std::size_t c = 0; c < columns.size(); ++c) {
      header += padded(std::string(role_width + 2, ' ') + titles[c], widths[c] + 2);
    }
    out_ += paint(header.substr(0, header.find_last_not_of(' ') + 1), "2") + "\n";
    for (std::size_t n = 0; n < finding.steps.size(); ++n) {
      const Step& step = finding.steps[n];
      const char* edge = n == first ? "┌─" : n == last ? "└─" : n > first && n < last ? "│ " : "  ";
      std::string indent;
      std::size_t column = 0;
      while (columns[column] != step.thread) indent.append(widths[column++] + 2, ' ');
      const Cell shown = cell(step, texts[column]);
      out_ += "  " + paint(edge, "36") + " " + indent +
              paint(padded(step.role, role_width), "1;36") + "  " + shown.line + "\n";
      if (shown.below.empty()) continue;
      out_ += "  " + paint(n >= first && n < last ? "│ " : "  ", "36") + " " + indent +
              std::string(role_width + 2, ' ') + paint(shown.below, "2") + "\n";
    }
    out_ += "\n";
  }

  // Too many threads for columns.
  void list(const Finding& finding, std::size_t role_width) {
    const auto [first, last] = bracket(finding);
    std::size_t widest = 0;
    for (const Step& step : finding.steps) widest = std::max(widest, width_of(thread_title(step)));
    for (std::size_t n = 0; n < finding.steps.size(); ++n) {
      const Step& step = finding.steps[n];
      const char* edge = n == first ? "┌─" : n == last ? "└─" : n > first && n < last ? "│ " : "  ";
      const Cell shown =
          cell(step, std::max<std::size_t>(options_.width, widest + 40) - widest - 10);
      out_ += "  " + paint(edge, "36") + " " + paint(padded(step.role, role_width), "1;36") + "  " +
              padded(thread_title(step), widest) + "  " + shown.line + "\n";
      if (shown.below.empty()) continue;
      out_ += "  " + paint(n >= first && n < last ? "│ " : "  ", "36") + " " +
              std::string(role_width + 2 + widest + 2, ' ') + paint(shown.below, "2") + "\n";
    }
    out_ += "\n";
  }

  // The stretch from the first to the last marked step, if one thread did both. Accesses of that
  // thread that have a note belong to the story as well.
  static std::pair<std::size_t, std::size_t> bracket(const Finding& finding) {
    const std::size_t none = finding.steps.size();
    std::size_t first = none, last = none;
    for (std::size_t n = 0; n < none; ++n) {
      if (finding.steps[n].role.empty()) continue;
      if (first == none) first = n;
      last = n;
    }
    if (first == last || finding.steps[first].thread != finding.steps[last].thread) {
      return {none, none};
    }
    for (std::size_t n = 0; n < first; ++n) {
      const Step& step = finding.steps[n];
      if (step.thread != finding.steps[last].thread || !is_access(step.kind) || step.note.empty())
        continue;
      first = n;
      break;
    }
    return {first, last};
  }

  void stacks(const Finding& finding) {
    std::size_t role_width = 0, name_width = 0;
    for (const Step& step : finding.steps) {
      if (step.role.empty()) continue;
      role_width = std::max(role_width, width_of(step.role));
      for (const Place& frame : step.stack) {
        name_width = std::max(name_width, width_of(short_function(frame.function)));
      }
    }
    name_width = std::min<std::size_t>(name_width, 48);
    std::string text;
    for (const Step& step : finding.steps) {
      if (step.role.empty()) continue;
      std::string label = padded(step.role, role_width);
      const auto add = [&](const std::string& line) {
        text += fmt::format("  {}  {}\n", label, line);
        label.assign(role_width, ' ');
      };
      for (const Place& frame : step.stack) {
        if (frame.function.empty() && frame.line == 0) continue;
        add(padded(cut(frame.function.empty() ? "?" : short_function(frame.function), name_width),
                   name_width) +
            (frame.is_definition ? "  defined at " : "  ") + place(frame));
      }
      std::string held;
      for (const HeldLock& lock : step.locks) {
        held += held.empty() ? "holding " : ", ";
        held += lock.name + (lock.mode == LockMode::kShared ? " (shared)" : "");
        const std::string taken = place(lock.acquired);
        if (!taken.empty()) held += " taken at " + taken;
      }
      if (!held.empty()) add(held);
    }
    if (!text.empty()) out_ += (finding.notes.empty() ? "" : "\n") + paint(text, "2");
  }

  const TerminalOptions& options_;
  SourceText source_;
  std::string out_;
};

// What a trace brought along must not give orders to the terminal.
void make_printable(std::string& text) {
  text = printable(text);
}

// Machines read names in full.
void shorten(std::string& names) {
  names = short_name(printable(names));
}

void make_printable(Place& place) {
  make_printable(place.function);
  make_printable(place.file);
}

void make_printable(VariableName& variable) {
  shorten(variable.name);
  make_printable(variable.declared);
}

Finding made_printable(Finding finding) {
  make_printable(finding.summary);
  shorten(finding.in_words);
  make_printable(finding.replay);
  for (std::string& note : finding.notes) shorten(note);
  for (VariableName& variable : finding.variables) make_printable(variable);
  for (Step& step : finding.steps) {
    make_printable(step.thread_name);
    make_printable(step.place);
    shorten(step.note);
    make_printable(step.variable);
    for (Place& frame : step.stack) make_printable(frame);
    for (HeldLock& lock : step.locks) {
      shorten(lock.name);
      make_printable(lock.acquired);
    }
  }
  return finding;
}

}  // namespace

std::string terminal(std::span<const Finding> findings, const TerminalOptions& options) {
  Printer printer(options);
  for (const Finding& finding : findings) printer.print(made_printable(finding));
  printer.closing(findings);
  return printer.take();
}

TerminalOptions terminal_options_for(int descriptor) {
  TerminalOptions out;
  if (isatty(descriptor) == 0) return out;
  const char* no_colour = std::getenv("NO_COLOR");
  out.colour = no_colour == nullptr || *no_colour == '\0';
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60) out.width = size.ws_col;
  return out;
}

}  // namespace heddle::report
