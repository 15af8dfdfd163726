#include "table/tables.h"

#include "table/curve.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle::table {
namespace {

class Writer {
 public:
  Writer(const std::vector<Program>& programs, const Results& results, const Budget& budget)
      : programs_(programs), results_(results), budget_(budget) {}

  Report write() {
    introduction();
    detection();
    false_positives();
    learning_curve();
    units();
    correlated();
    schedules();
    differences();
    return std::move(report_);
  }

 private:
  template <typename... T>
  void print(fmt::format_string<T...> format, T&&... arguments) {
    report_.markdown += fmt::format(format, std::forward<T>(arguments)...);
  }

  void header(const std::vector<std::string>& columns) {
    print("\n| {} |\n", fmt::join(columns, " | "));
    for (std::size_t i = 0; i < columns.size(); ++i) print("|---");
    print("|\n");
  }

  void row(const std::vector<std::string>& cells) { print("| {} |\n", fmt::join(cells, " | ")); }

  const Measured* measured(const Program& program) const {
    const auto at = results_.find(program.name);
    return at == results_.end() ? nullptr : &at->second;
  }

  static const Judged& judged(const Measured& measured, const std::string& detector) {
    static const Judged none;
    const auto at = measured.detectors.find(detector);
    return at == measured.detectors.end() ? none : at->second;
  }

  static std::string found(const Measured& measured, const std::string& detector) {
    const unsigned runs = judged(measured, detector).found;
    if (runs == 0) return "no";
    return runs == measured.judged ? "yes" : fmt::format("{} of {}", runs, measured.judged);
  }

  static std::string in_paper(const Program& program, const std::string& detector) {
    const auto at = program.paper.find(name_in_paper(detector));
    return at == program.paper.end() ? "–" : at->second ? "yes" : "no";
  }

  void introduction() {
    print(
        "# The papers' tables, measured\n\n"
        "`make table` wrote this page (and `table.json`) from the programs in `examples/`, built "
        "by "
        "`heddle-c++ -std=c++20 -O1 -g`. Schedules are `random` with `--points {}` unless "
        "said otherwise; the seeds are fixed, so the same build gives the same numbers, but for "
        "the native column.\n\n"
        "*Found* means: in the run, the detector reports something whose accesses are at the lines "
        "that are marked as the bug (`examples/README.md` has the rule), compared by the program, "
        "not by hand. *yes*: in each judged run; *n of m*: in n of them; *no*: in none. Everything "
        "else that a detector says counts as a false alarm, *static* once per place (sites and "
        "case), *dynamic* as often as it happened. `avio` and `avio-h` have been trained with {} "
        "passing runs before (fewer where {} runs did not have as many); the other detectors need "
        "no training.\n",
        kPoints, budget_.training, budget_.training_limit);
  }

  void detection() {
    print(
        "\n## 1. Bugs found (AVIO, table 4)\n\n"
        "{} failing runs per program. Ours, then the paper's verdict (–: the paper has none). The "
        "first six are the paper's table; the others come from the other papers.\n",
        budget_.judged);
    std::vector<std::string> columns = {"bug"};
    for (const char* const detector : kDetectors) columns.emplace_back(detector);
    header(columns);
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (!program.fails() || program.group == "correlated" || m == nullptr) continue;
      std::vector<std::string> cells = {program.name};
      for (const char* const detector : kDetectors) {
        cells.push_back(
            fmt::format("{} / {}", bold(found(*m, detector)), in_paper(program, detector)));
      }
      row(cells);
    }
    print(
        "\n`race` is the paper's happens-before, `frontier` SVD's FRD (marks set "
        "automatically).\n");
  }

  static std::string bold(const std::string& text) { return "**" + text + "**"; }

  void alarm_rows(bool bug) {
    std::vector<std::uint64_t> sums(2 * std::size(kDetectors), 0);
    std::size_t count = 0;
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || program.group == "correlated" || program.bug != bug) continue;
      std::vector<std::string> cells = {program.name};
      std::size_t column = 0;
      for (const char* const detector : kDetectors) {
        const Judged& j = judged(*m, detector);
        sums[column++] += j.false_alarms.size();
        sums[column++] += j.dynamic_false;
        cells.push_back(j.false_alarms.empty()
                            ? "0"
                            : fmt::format("{} / {}", j.false_alarms.size(), j.dynamic_false));
      }
      ++count;
      row(cells);
    }
    std::vector<std::string> cells = {"*average*"};
    for (std::size_t i = 0; i < std::size(kDetectors) && count > 0; ++i) {
      const double n = static_cast<double>(count);
      cells.push_back(fmt::format("{:.2f} / {:.1f}", static_cast<double>(sums[2 * i]) / n,
                                  static_cast<double>(sums[2 * i + 1]) / n));
    }
    row(cells);
  }

  void false_positives() {
    print(
        "\n## 2. False alarms (AVIO, table 5)\n\n"
        "Static / dynamic, over {} runs per program: failing runs of programs with a bug, any runs "
        "of correct ones.\n",
        budget_.judged);
    std::vector<std::string> columns = {"program with a bug"};
    for (const char* const detector : kDetectors) columns.emplace_back(detector);
    header(columns);
    alarm_rows(true);
    columns[0] = "correct program";
    header(columns);
    alarm_rows(false);
    print(
        "\nThe paper: AVIO-S 3.25 / 4 on servers and 0 / 0 on SPLASH-2; AVIO-H 4.75 / 7 and "
        "1.25 / 1.25; lockset 81.5 / 146 and 9.75 / 25382 (averages per program, one run each).\n");
  }

  void learning_curve() {
    std::vector<unsigned> runs;
    for (const unsigned stop : kCurve) {
      if (stop < budget_.training) runs.push_back(stop);
    }
    runs.push_back(budget_.training);
    std::vector<unsigned> total(runs.size(), 0);
    std::vector<Curve> curves;
    unsigned programs = 0;
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || program.bug || m->curve.size() != runs.size()) continue;
      ++programs;
      for (std::size_t i = 0; i < runs.size(); ++i) total[i] += m->curve[i];
      if (m->curve[0] != 0) curves.push_back({program.name, m->curve});
    }
    print(
        "\n## 3. The learning curve (AVIO, figure 10)\n\n"
        "Static false alarms of `avio` on {} runs of each of the {} correct programs, after that "
        "many training runs:\n\n",
        budget_.judged, programs);
    print("```\n{}```\n\n![false alarms over training runs](learning.svg)\n",
          curve_as_text(runs, total));
    std::vector<std::string> columns = {"program"};
    for (const unsigned run : runs) columns.push_back(std::to_string(run));
    header(columns);
    for (const Curve& curve : curves) {
      std::vector<std::string> cells = {curve.name};
      for (const unsigned alarms : curve.alarms) cells.push_back(std::to_string(alarms));
      row(cells);
    }
    print("\nPrograms that had no false alarm after one training run are left out.\n");
    std::sort(curves.begin(), curves.end(),
              [](const Curve& a, const Curve& b) { return a.alarms[0] > b.alarms[0]; });
    curves.insert(curves.begin(), {"all programs", total});
    if (curves.size() > 8) curves.resize(8);
    report_.svg = curve_as_svg(runs, curves);
  }

  // Per million instructions of the judged runs, and the total. A native run's count stands for
  // each of them.
  static std::string rate(std::uint64_t count, const Measured& m) {
    if (!m.native) return fmt::format("({})", count);
    const double million = 1e-6 * static_cast<double>(m.native->own) * m.judged;
    return fmt::format("{:.0f} ({})", static_cast<double>(count) / million, count);
  }

  void units() {
    const bool counted = std::any_of(results_.begin(), results_.end(),
                                     [](const auto& entry) { return entry.second.native; });
    print(
        "\n## 4. Units (SVD, table 2)\n\n"
        "{} runs per program; ′: failing ones. {} *Missed*: failing runs in which the bug was not "
        "found. *Log*: entries of the examination log, static (dynamic); † : one of them is the "
        "bug, at its marked lines.\n",
        budget_.judged,
        counted
            ? "*Instructions* are those of one run of the native program (release build) in its "
              "own code, without libraries and loader, counted by Valgrind's callgrind; the "
              "rates take every judged run to have as many."
            : "**Instructions not counted**: Valgrind is not installed, so there are totals, "
              "but no rates.");
    header({"program", "instructions", "missed: svd", "frontier", "static false: svd", "frontier",
            "dynamic false per million instructions (total): svd", "frontier", "log",
            "units per million instructions (total)"});
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || program.group == "correlated") continue;
      const Judged& svd = judged(*m, "svd");
      const Judged& frontier = judged(*m, "frontier");
      const auto missed = [&](const Judged& j) {
        return m->judged_fail ? std::to_string(m->judged - j.found) : std::string("–");
      };
      row({program.name + (m->judged_fail ? "′" : ""),
           m->native ? std::to_string(m->native->own) : "not counted", missed(svd),
           missed(frontier), std::to_string(svd.false_alarms.size()),
           std::to_string(frontier.false_alarms.size()), rate(svd.dynamic_false, *m),
           rate(frontier.dynamic_false, *m),
           fmt::format("{} ({}){}", m->svd.log_groups.size(), m->svd.log_entries,
                       m->svd.log_names_bug ? " †" : ""),
           rate(m->svd.units, *m)});
    }
    print(
        "\nThe paper, per million instructions: Apache′ 0 missed, 1 and 2 static, 0.2 and 1.3 "
        "dynamic, log 2, 324 units; MySQL′ 0 missed, 44 and 91 static, 5.8 and 140 dynamic, log "
        "50, 77 units. Servers compute between the accesses that threads share; these programs do "
        "little else, so everything is more frequent here.\n");
  }

  static std::string word(const std::optional<bool>& race) {
    return !race ? "–" : *race ? "race" : "no race";
  }

  static std::optional<bool> paper_says(const Program& program, const char* tool) {
    const auto at = program.paper.find(tool);
    if (at == program.paper.end()) return std::nullopt;
    return at->second;
  }

  void correlated() {
    print(
        "\n## 5. The 22 tests (correlated-2014, tables 2 and 3)\n\n"
        "{} runs per test, failing ones where the test can fail. What a detector says of a wrong "
        "test: *yes*, *n of m*, *no*, as above; of a right one: *–* (silent), or *false alarm*. "
        "**x**: "
        "the verdict is wrong. Helgrind+ stands in the paper for table 3 and test 4.\n",
        budget_.judged);
    std::vector<std::string> columns = {"test", "right verdict", "the paper's tool", "Helgrind+"};
    for (const char* const detector : kDetectors) columns.emplace_back(detector);
    header(columns);
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || program.group != "correlated") continue;
      const auto paper = [&](const char* tool) {
        const std::optional<bool> said = paper_says(program, tool);
        const bool wrong = said && program.right && *said != *program.right;
        return word(said) + (wrong ? " **x**" : "");
      };
      std::vector<std::string> cells = {program.name.substr(program.name.rfind('_') + 1),
                                        word(program.right), paper("correlated"),
                                        paper("helgrind+")};
      for (const char* const detector : kDetectors) {
        const Judged& j = judged(*m, detector);
        if (program.bug) {
          cells.push_back(found(*m, detector) + (j.found == 0 ? " **x**" : ""));
        } else {
          cells.push_back(j.false_alarms.empty() ? "–" : "false alarm **x**");
        }
      }
      row(cells);
    }
  }

  static std::string median(const Hunt& hunt) {
    const std::size_t all = hunt.schedules.size() + hunt.gave_up;
    if (all == 0) return "–";
    if (hunt.schedules.size() <= all / 2) return "never";
    // Hunts that gave up count as longer than all others.
    const std::size_t low = (all - 1) / 2, high = all / 2;
    const double value = (hunt.schedules[low] + hunt.schedules[high]) / 2.0;
    return fmt::format("{:g}{}", value,
                       hunt.gave_up == 0 ? "" : fmt::format(" ({} gave up)", hunt.gave_up));
  }

  void schedules() {
    print(
        "\n## 6. Schedules to the first failure\n\n"
        "Median of {} hunts (each from its own first seed, at most {} schedules), under `random` "
        "and "
        "`pct` (told the length of a run), and how many of {} native runs on this machine fail "
        "(release "
        "build, the default number of rounds).\n",
        budget_.hunts, budget_.hunt_limit, budget_.native);
    header({"program", "random", "pct", fmt::format("native, of {}", budget_.native)});
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || !program.fails()) continue;
      row({program.name, median(m->random), median(m->pct),
           m->native_failed ? std::to_string(*m->native_failed) : "–"});
    }
    for (const Program& program : programs_) {
      const auto why = program.why.find("pct");
      if (why != program.why.end()) print("\n`{}` under `pct`: {}.\n", program.name, why->second);
    }
  }

  // A verdict counts as right if the detector found the wrong test in some run, or was silent.
  static bool is_right(const Program& program, const Judged& judged) {
    return program.bug ? judged.found > 0 : judged.false_alarms.empty();
  }

  // Where the paper's tool and ours part ways, either way.
  void against_the_paper() {
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      const std::optional<bool> tool = paper_says(program, "correlated");
      if (m == nullptr || !tool || !program.right) continue;
      std::vector<std::string> right;
      for (const char* const detector : kDetectors) {
        if (is_right(program, judged(*m, detector))) right.emplace_back(detector);
      }
      const bool tool_right = *tool == *program.right;
      if (tool_right && !right.empty()) continue;
      print(
          "- Test {}: the paper's tool is {}; {}.\n",
          program.name.substr(program.name.rfind('_') + 1), tool_right ? "right" : "wrong",
          right.empty() ? "none of ours is" : fmt::format("right are {}", fmt::join(right, ", ")));
    }
  }

  void differences() {
    print(
        "\n## Differences and exceptions, explained\n\n"
        "Where a verdict is not the paper's, and why a detector says something about correct "
        "programs.\n\n");
    against_the_paper();
    // One line per reason, with the programs it holds for.
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> reasons;
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr) continue;
      for (const auto& [detector, j] : m->detectors) {
        const auto paper = program.paper.find(name_in_paper(detector));
        const bool differs =
            paper != program.paper.end() && program.bug && paper->second != (j.found > 0);
        const bool reported = !program.bug && !j.false_alarms.empty();
        if (!differs && !reported) continue;
        const auto why = program.why.find(detector);
        reasons[{detector, why == program.why.end() ? "**not explained yet**" : why->second}]
            .push_back(program.name);
      }
    }
    std::size_t alarms = 0, one_line_only = 0;
    for (const Program& program : programs_) {
      const Measured* m = measured(program);
      if (m == nullptr || program.bug) continue;
      alarms += judged(*m, "avio-h").false_alarms.size();
      one_line_only += judged(*m, "avio-h").one_line_only;
    }
    print(
        "- Of the {} static false alarms of `avio-h` on correct programs, exact bytes disagree "
        "with "
        "{}: they are the price of cache lines (section 4.3 of the paper), each program's own "
        "below.\n",
        alarms, one_line_only);
    header({"detector", "why", "programs"});
    for (const auto& [reason, names] : reasons) {
      row({reason.first, reason.second, fmt::format("{}", fmt::join(names, ", "))});
    }
  }

  const std::vector<Program>& programs_;
  const Results& results_;
  const Budget& budget_;
  Report report_;
};

}  // namespace

Report write_report(const std::vector<Program>& programs, const Results& results,
                    const Budget& budget) {
  return Writer(programs, results, budget).write();
}

}  // namespace heddle::table
