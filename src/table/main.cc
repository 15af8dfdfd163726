// heddle_table: the papers' tables from the programs in examples/ (`make table`), the same in short
// against what is expected (a test), and the seeds that make programs fail.
//
//   heddle_table run       EXAMPLES PROGRAMS NATIVE OUTPUT   all tables; writes OUTPUT/table.md …
//   heddle_table render    EXAMPLES OUTPUT                   the page again, from OUTPUT/table.json
//   heddle_table verdicts  EXAMPLES PROGRAMS                 compares with expected.json
//   heddle_table update    EXAMPLES PROGRAMS                 hunts seeds, writes expected.json
//   heddle_table show      EXAMPLES PROGRAMS                 what every detector says, in short
//
// Every program is measured in a process of its own, as many at once as there are processors.
#include "table/measure.h"
#include "table/programs.h"
#include "table/results.h"
#include "table/tables.h"
#include "table/verdicts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::table {
namespace {

constexpr unsigned kStoredSeeds = 5;

int fail(const std::string& message) {
  fmt::print(stderr, "heddle_table: {}\n", message);
  return 2;
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return Error{fmt::format("{}: cannot be written", path)};
  return Done{};
}

// Calls `work` for every program, each in a child of its own; `done` in this process, as they end.
// The children's exit statuses are what `work` returned.
void in_children(const std::vector<Program>& programs,
                 const std::function<int(const Program&)>& work,
                 const std::function<void(const Program&, int)>& done) {
  const unsigned limit = std::max(1u, std::thread::hardware_concurrency());
  std::map<pid_t, const Program*> running;
  std::size_t next = 0;
  while (next < programs.size() || !running.empty()) {
    if (next < programs.size() && running.size() < limit) {
      std::fflush(nullptr);
      const pid_t pid = fork();
      if (pid == 0) {
        const int status = work(programs[next]);
        std::fflush(nullptr);
        _exit(status);
      }
      if (pid > 0) running[pid] = &programs[next];
      ++next;
      continue;
    }
    int status = 0;
    const pid_t pid = wait(&status);
    const auto at = running.find(pid);
    if (at == running.end()) continue;
    done(*at->second, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    running.erase(at);
  }
}

std::vector<Program> only(std::vector<Program> programs, const std::vector<std::string>& names) {
  if (names.empty()) return programs;
  std::erase_if(programs, [&](const Program& program) {
    return std::find(names.begin(), names.end(), program.name) == names.end();
  });
  return programs;
}

std::string part_of(const std::string& output, const Program& program) {
  return fmt::format("{}/parts/{}.json", output, program.name);
}

int render(const std::string& examples, const std::string& output) {
  const Result<std::vector<Program>> programs = read_programs(examples);
  if (!programs.ok()) return fail(programs.error().message);
  const Result<Results> results = read_results(output + "/table.json");
  if (!results.ok()) return fail(results.error().message);
  const Report report = write_report(*programs, *results, Budget());
  for (const auto& [name, text] :
       {std::pair{"/table.md", &report.markdown}, std::pair{"/learning.svg", &report.svg}}) {
    const Status written = write_file(output + name, *text);
    if (!written.ok()) return fail(written.error().message);
  }
  fmt::print("{}", report.markdown);
  return 0;
}

int run(const Place& place, const std::string& output, const std::vector<std::string>& names) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Result<std::vector<Program>> all = read_programs(place.examples);
  if (!all.ok()) return fail(all.error().message);
  const std::vector<Program> programs = only(*all, names);
  const Budget budget;
  std::filesystem::create_directories(output + "/parts");

  Results results;
  std::size_t ended = 0, failed = 0;
  in_children(
      programs,
      [&](const Program& program) {
        const Result<Measured> measured = measure(place, program, budget);
        if (!measured.ok()) return fail(measured.error().message);
        const Status written =
            write_file(part_of(output, program), print_json(budget, {{program.name, *measured}}));
        return written.ok() ? 0 : fail(written.error().message);
      },
      [&](const Program& program, int status) {
        Result<Results> part = Error{"it ended with an error"};
        if (status == 0) part = read_results(part_of(output, program));
        failed += part.ok() ? 0 : 1;
        if (part.ok()) results.merge(*part);
        fmt::print(stderr, "[{:>5.0f} s] {:>2}/{} {}{}\n", seconds(), ++ended, programs.size(),
                   program.name, part.ok() ? "" : ": not measured: " + part.error().message);
      });
  for (const Program& program : programs) {
    if (!program.fails() || !results.contains(program.name)) continue;
    const Result<unsigned> native = native_failures(place, program, budget.native);
    if (!native.ok()) return fail(native.error().message);
    results[program.name].native_failed = *native;
    fmt::print(stderr, "[{:>5.0f} s] {} natively: {} of {} fail\n", seconds(), program.name,
               *native, budget.native);
  }
  const Status written = write_file(output + "/table.json", print_json(budget, results));
  if (!written.ok()) return fail(written.error().message);
  const int rendered = render(place.examples, output);
  fmt::print(stderr, "heddle_table: {0}/table.md, {0}/table.json, {0}/learning.svg; {1:.0f} s\n",
             output, seconds());
  return failed == 0 ? rendered : 1;
}

int verdicts(const Place& place, const std::vector<std::string>& names) {
  Result<std::vector<Program>> all = read_programs(place.examples);
  if (!all.ok()) return fail(all.error().message);
  std::size_t wrong = 0;
  in_children(
      only(*all, names),
      [&](const Program& program) {
        std::vector<std::string> problems = unexplained(program);
        const Result<Measured> measured = quick_measure(place, program);
        if (!measured.ok()) {
          problems.push_back(measured.error().message);
        } else {
          const std::vector<std::string> differences =
              compare(program, verdicts_of(program, *measured));
          problems.insert(problems.end(), differences.begin(), differences.end());
        }
        for (const std::string& problem : problems) fmt::print("{}\n", problem);
        return problems.empty() ? 0 : 1;
      },
      [&](const Program& program, int status) {
        if (status > 1) fmt::print("{}: ended with status {}\n", program.name, status);
        wrong += status == 0 ? 0 : 1;
      });
  if (wrong == 0) return 0;
  fmt::print(
      "{} programs are not judged as examples/expected.json says. If the new verdicts are right: "
      "heddle_table update, and look at the difference\n",
      wrong);
  return 1;
}

int update(const Place& place, const std::vector<std::string>& names) {
  Result<std::vector<Program>> all = read_programs(place.examples);
  if (!all.ok()) return fail(all.error().message);
  std::vector<Program> programs = only(*all, names);
  const Budget budget;
  for (Program& program : programs) {
    if (program.fails()) {
      Result<std::vector<std::uint64_t>> seeds =
          failing_seeds(place, program, 1, kStoredSeeds, budget.hunt_limit);
      if (!seeds.ok()) return fail(seeds.error().message);
      program.seeds = std::move(*seeds);
    }
    const Result<Measured> measured = quick_measure(place, program);
    if (!measured.ok()) return fail(measured.error().message);
    const Verdicts now = verdicts_of(program, *measured);
    for (const std::string& line : compare(program, now)) fmt::print("{}\n", line);
    program.heddle = now;
    for (const std::string& line : unexplained(program)) fmt::print("{}\n", line);
  }
  const Status written = update_expected(place.examples, programs);
  return written.ok() ? 0 : fail(written.error().message);
}

int show(const Place& place, const std::vector<std::string>& names) {
  Result<std::vector<Program>> all = read_programs(place.examples);
  if (!all.ok()) return fail(all.error().message);
  for (const Program& program : only(*all, names)) {
    const Result<Measured> measured = quick_measure(place, program);
    if (!measured.ok()) return fail(measured.error().message);
    fmt::print("{}\n", program.name);
    for (const auto& [detector, judged] : measured->detectors) {
      for (const std::string& line : judged.the_bug)
        fmt::print("  {} the bug: {}\n", detector, line);
      for (const auto& [line, about] : judged.false_alarms) {
        fmt::print("  {} false alarm: {}\n    {}\n", detector, line, about);
      }
    }
  }
  return 0;
}

int main_with(const std::vector<std::string>& words) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string verb = words.empty() ? "" : words[0];
  const std::size_t places = verb == "run" ? 4 : 2;
  using Names = std::vector<std::string>;
  const std::map<std::string, int (*)(const Place&, const Names&)> short_verbs = {
      {"verdicts", verdicts}, {"update", update}, {"show", show}};
  if ((verb != "run" && verb != "render" && !short_verbs.contains(verb)) ||
      words.size() < places + 1) {
    return fail(
        "usage: heddle_table run EXAMPLES PROGRAMS NATIVE OUTPUT [NAME …]\n"
        "       heddle_table render EXAMPLES OUTPUT\n"
        "       heddle_table verdicts|update|show EXAMPLES PROGRAMS [NAME …]");
  }
  if (verb == "render") return render(words[1], words[2]);
  Place place{words[1], words[2], verb == "run" ? words[3] : ""};
  const Names names(words.begin() + static_cast<long>(places) + 1, words.end());
  if (verb == "run") return run(place, words[4], names);
  return short_verbs.at(verb)(place, names);
}

}  // namespace
}  // namespace heddle::table

int main(int argc, char** argv) {
  return heddle::table::main_with({argv + 1, argv + argc});
}
