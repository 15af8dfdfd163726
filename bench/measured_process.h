// A program measured in a process of its own: what the benches of recording and of SVD share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::bench {

using Command = std::vector<std::string>;

// What a measured process says about its work, through a pipe; each bench uses what it needs.
struct Report {
  std::uint64_t events = 0;
  std::uint64_t accesses = 0;
  std::uint64_t passed = 0;
  std::uint64_t findings = 0;
  std::uint64_t bytes = 0;
  long own_kilobytes = 0;    // peak of the measured process
  long child_kilobytes = 0;  // peak of the program it ran
};

struct Measured {
  double seconds = 0;
  Report report;
};

inline double seconds(const rusage& usage) {
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Runs `work` in a process of its own; its CPU time includes that of the children it waited for.
inline std::optional<Measured> measure(const std::function<int(Report&)>& work) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    Report report;
    const int status = work(report);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    report.own_kilobytes = usage.ru_maxrss;
    getrusage(RUSAGE_CHILDREN, &usage);
    report.child_kilobytes = usage.ru_maxrss;
    (void)!write(pipe_fds[1], &report, sizeof report);
    _exit(status);
  }
  close(pipe_fds[1]);
  Measured measured;
  const bool told = read(pipe_fds[0], &measured.report, sizeof measured.report) ==
                    static_cast<ssize_t>(sizeof measured.report);
  close(pipe_fds[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!told || status != 0) return std::nullopt;
  measured.seconds = seconds(usage);
  return measured;
}

inline std::optional<Measured> best(unsigned repeat, const std::function<int(Report&)>& work) {
  std::optional<Measured> least;
  for (unsigned i = 0; i < repeat; ++i) {
    const std::optional<Measured> one = measure(work);
    if (!one.has_value()) return std::nullopt;
    if (!least.has_value() || one->seconds < least->seconds) least = one;
  }
  return least;
}

inline int run_plainly(const Command& command) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// The kernels of a folder of kernel_NAME.heddle, by name.
inline std::vector<std::string> kernels_in(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("kernel_") && name.ends_with(".heddle")) {
      out.push_back(name.substr(7, name.size() - 14));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// What the command lines of both benches have in common:
//   FOLDER [--quick] [--repeat N] [--threads N] [SWITCH…] [KERNEL…]
struct Arguments {
  std::filesystem::path folder;
  bool quick = false;
  unsigned repeat = 1;
  std::string threads = "2";
  std::set<std::string> switches;
  std::vector<std::string> kernels;  // all of the folder's, unless some are named

  // A kernel of the folder in one of its variants, with the size and threads asked for.
  Command command(const std::string& kernel, const std::string& variant) const {
    Command words = {(folder / ("kernel_" + kernel + "." + variant)).string()};
    if (quick) words.emplace_back("--quick");
    words.push_back(threads);
    return words;
  }
};

// Nothing when the words are not understood; `switches` are those that the bench knows besides.
inline std::optional<Arguments> parse(int argc, char** argv, unsigned repeat,
                                      const std::set<std::string>& switches) {
  Arguments out;
  out.repeat = repeat;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      out.quick = true;
    } else if (word == "--repeat" && i + 1 < argc) {
      out.repeat = static_cast<unsigned>(std::max(1, std::atoi(argv[++i])));
    } else if (word == "--threads" && i + 1 < argc) {
      out.threads = argv[++i];
    } else if (switches.contains(word)) {
      out.switches.insert(word);
    } else if (word.starts_with("-")) {
      return std::nullopt;
    } else if (out.folder.empty()) {
      out.folder = word;
    } else {
      out.kernels.push_back(word);
    }
  }
  if (out.folder.empty()) return std::nullopt;
  if (out.kernels.empty()) out.kernels = kernels_in(out.folder);
  if (out.kernels.empty()) {
    std::fprintf(stderr, "no kernels in %s: build the target heddle_bench_kernels first\n",
                 out.folder.c_str());
    return std::nullopt;
  }
  return out;
}

}  // namespace heddle::bench
