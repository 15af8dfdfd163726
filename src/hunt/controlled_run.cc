#include "hunt/controlled_run.h"

#include "abi/runtime_options.h"
#include "trace/event.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::hunt {
namespace {

std::string all_options(const RunRequest& request, int status_fd) {
  std::vector<std::pair<std::string, std::string>> options = {{"level", "off"}};
  options.insert(options.end(), request.runtime.begin(), request.runtime.end());
  if (request.timeout != 0) options.emplace_back("timeout", std::to_string(request.timeout));
  options.emplace_back("status_fd", std::to_string(status_fd));
  std::string text = options_text(options);
  const char* inherited = std::getenv("HEDDLE_OPTIONS");
  if (inherited == nullptr || *inherited == '\0') return text;
  return std::string(inherited) + ":" + text;
}

// The environment of the program, as posix_spawn wants it.
class Environment {
 public:
  Environment(const RunRequest& request, int status_fd) {
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string_view entry = *at;
      if (entry.starts_with("HEDDLE_OPTIONS=") || entry.starts_with("HEDDLE_LEADER=")) continue;
      if (entry.starts_with("LD_PRELOAD=") && !request.preload.empty()) {
        entries_.push_back(fmt::format("{}:{}", entry, request.preload));
        preloaded_ = true;
        continue;
      }
      pointers_.push_back(*at);
    }
    entries_.push_back("HEDDLE_OPTIONS=" + all_options(request, status_fd));
    if (!request.preload.empty() && !preloaded_) {
      entries_.push_back("LD_PRELOAD=" + request.preload);
    }
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
  bool preloaded_ = false;
};

}  // namespace

Result<int> start_program(const RunRequest& request, const StatusPage& page, int kept_fd) {
  const int status_fd = page.fd();
  Environment environment(request, status_fd);
  std::vector<char*> arguments;
  arguments.reserve(request.command.size() + 1);
  for (const std::string& word : request.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, status_fd, status_fd);  // keeps it open across exec
  if (kept_fd >= 0) posix_spawn_file_actions_adddup2(&actions, kept_fd, kept_fd);
  if (request.quiet) {
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Error{fmt::format("cannot run {}: {}", request.command[0], std::strerror(error))};
  }
  return child;
}

namespace {

// Waits for the child, killing it when it does not end in time. True: it had to be killed.
bool wait_for(pid_t child, unsigned timeout, int* status) {
  bool killed = false;
  if (timeout != 0) {
    constexpr unsigned kGrace = 2;  // seconds for the runtime to report the hang itself
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    if (fd >= 0) {
      pollfd waiting{fd, POLLIN, 0};
      const int limit = static_cast<int>((timeout + kGrace) * 1000);
      int ready = 0;
      while ((ready = poll(&waiting, 1, limit)) < 0 && errno == EINTR) continue;
      if (ready == 0) {
        kill(child, SIGKILL);
        killed = true;
      }
      close(fd);
    }
  }
  while (waitpid(child, status, 0) < 0 && errno == EINTR) continue;
  return killed;
}

}  // namespace

RunReport report_of(int status, bool killed, const heddle_status& page) {
  RunReport report;
  report.controlled = page.magic == HEDDLE_STATUS_MAGIC;
  report.points = page.points;
  report.switches = page.switches;
  report.hash = page.hash;
  report.threads = page.threads;
  report.seized = page.seized;
  report.sources = page.sources;
  if (page.diverged != 0) report.diverged_at = page.diverged_at;
  report.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  const auto end = static_cast<RunEnd>(page.end_kind);
  if (page.ended != 0) report.text = page.text;
  if (killed || (page.ended != 0 && end == RunEnd::kHang)) {
    report.result = RunResult::kHung;
  } else if (page.ended != 0 && end == RunEnd::kDeadlock) {
    report.result = RunResult::kDeadlocked;
  } else if (WIFSIGNALED(status)) {
    report.result = RunResult::kCrashed;
  } else {
    report.result = report.value == 0 ? RunResult::kPassed : RunResult::kFailed;
  }
  return report;
}

const char* run_result_name(RunResult result) {
  static constexpr std::array<const char*, kRunResults> kNames = {"passed", "failed", "crashed",
                                                                  "deadlocked", "hung"};
  return kNames[static_cast<std::size_t>(result)];
}

std::string describe(const RunReport& report) {
  switch (report.result) {
    case RunResult::kPassed:
    case RunResult::kFailed:
      return fmt::format("exit status {}", report.value);
    case RunResult::kCrashed: {
      const char* name = sigabbrev_np(report.value);
      std::string text =
          name == nullptr ? fmt::format("signal {}", report.value) : fmt::format("SIG{}", name);
      if (!report.text.empty()) text += ": " + report.text;
      return text;
    }
    case RunResult::kDeadlocked:
    case RunResult::kHung:
      return report.text.substr(0, report.text.find('\n'));
  }
  return {};
}

Result<StatusPage> StatusPage::make() {
  StatusPage page;
  page.fd_ = memfd_create("heddle-status", MFD_CLOEXEC);
  if (page.fd_ < 0 || ftruncate(page.fd_, sizeof(heddle_status)) != 0) {
    return Error{fmt::format("cannot make a shared page: {}", std::strerror(errno))};
  }
  void* mapping =
      mmap(nullptr, sizeof(heddle_status), PROT_READ | PROT_WRITE, MAP_SHARED, page.fd_, 0);
  if (mapping == MAP_FAILED) {
    return Error{fmt::format("cannot map a shared page: {}", std::strerror(errno))};
  }
  page.status_ = static_cast<heddle_status*>(mapping);
  return page;
}

StatusPage::StatusPage(StatusPage&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), status_(std::exchange(other.status_, nullptr)) {}

StatusPage::~StatusPage() {
  if (status_ != nullptr) munmap(status_, sizeof(heddle_status));
  if (fd_ >= 0) close(fd_);
}

void StatusPage::clear() {
  std::memset(status_, 0, sizeof *status_);
}

Result<RunReport> run_controlled(const RunRequest& request, StatusPage& page) {
  page.clear();
  const Result<int> child = start_program(request, page);
  if (!child.ok()) return child.error();
  int status = 0;
  const bool killed = wait_for(*child, request.timeout, &status);
  return report_of(status, killed, *page.status());
}

std::string find_runtime() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* relative : {"../runtime", "../lib/heddle", "../lib/x86_64-linux-gnu/heddle"}) {
    const fs::path library = (self / relative / "libheddle_rt.so").lexically_normal();
    if (fs::exists(library, error)) return library.string();
  }
  return {};
}

}  // namespace heddle::hunt
