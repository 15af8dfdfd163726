#include "table/native_run.h"

#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::table {
namespace {

int wait_for(pid_t pid, unsigned timeout) {
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (watch >= 0) {
    pollfd ended{watch, POLLIN, 0};
    if (poll(&ended, 1, static_cast<int>(timeout) * 1000) == 0) kill(pid, SIGKILL);
    close(watch);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

Result<int> native_run(const std::vector<std::string>& command, unsigned timeout) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // many of them crash
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int problem = posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) {
    return Error{fmt::format("cannot run {}: {}", command[0], std::strerror(problem))};
  }
  return wait_for(pid, timeout);
}

}  // namespace heddle::table
