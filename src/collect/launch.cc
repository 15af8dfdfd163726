#include "collect/launch.h"

#include "abi/runtime_options.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::collect {
namespace {

// A private folder for the socket. The path of a socket has little room, so a long TMPDIR is no
// good.
Result<std::string> private_folder() {
  const char* wanted = std::getenv("TMPDIR");
  std::string base = wanted == nullptr || *wanted == '\0' ? "/tmp" : wanted;
  if (base.size() > 80) base = "/tmp";
  std::string path = base + "/heddle.XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Error{fmt::format("cannot make a folder in {}: {}; set TMPDIR to a folder you can write",
                             base, std::strerror(errno))};
  }
  return path;
}

Result<int> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{fmt::format("{}: too long for a socket; set TMPDIR to a shorter path", path)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 128) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return Error{fmt::format("cannot listen at {}: {}", path, why)};
  }
  return fd;
}

// In the child: becomes the program, or says through `report` why it cannot.
[[noreturn]] void become(const std::vector<std::string>& command, const std::string& options,
                         int output_fd, int report) {
  if (output_fd >= 0) {
    dup2(output_fd, STDOUT_FILENO);
    dup2(output_fd, STDERR_FILENO);
  }
  setenv("HEDDLE_OPTIONS", options.c_str(), 1);
  unsetenv("HEDDLE_LEADER");  // ours, when this command runs under control itself
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  (void)!write(report, &why, sizeof why);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<Launch>> Launch::start(const LaunchOptions& options, int* start_status) {
  *start_status = 2;
  if (options.command.empty()) return Error{"there is no program to run"};
  auto launch = std::unique_ptr<Launch>(new Launch);
  Result<std::string> folder = private_folder();
  if (!folder.ok()) return folder.error();
  launch->folder_ = *folder;
  launch->socket_path_ = *folder + "/s";
  Result<int> listener = listen_at(launch->socket_path_);
  if (!listener.ok()) return listener.error();
  launch->listener_ = *listener;

  std::vector<std::pair<std::string, std::string>> runtime = options.runtime;
  runtime.emplace_back("collector", launch->socket_path_);
  std::string text = options_text(runtime);
  const char* inherited = std::getenv("HEDDLE_OPTIONS");
  if (inherited != nullptr && *inherited != '\0') text = std::string(inherited) + ":" + text;

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return Error{"cannot make a pipe"};
  launch->child_ = fork();
  if (launch->child_ == 0) become(options.command, text, options.output_fd, report[1]);
  close(report[1]);
  int why = launch->child_ < 0 ? errno : 0;
  if (launch->child_ > 0 && read(report[0], &why, sizeof why) < 0) why = 0;
  close(report[0]);
  if (why != 0) {
    if (launch->child_ > 0) launch->wait();
    *start_status = why == ENOENT ? 127 : 126;
    return Error{fmt::format("cannot run {}: {}", options.command[0], std::strerror(why))};
  }
  launch->child_fd_ = static_cast<int>(syscall(SYS_pidfd_open, launch->child_, 0));
  if (launch->child_fd_ < 0) {
    return Error{fmt::format("cannot watch the program: {}", std::strerror(errno))};
  }
  *start_status = 0;
  return launch;
}

Launch::~Launch() {
  if (listener_ >= 0) close(listener_);
  if (child_fd_ >= 0) close(child_fd_);
  if (!socket_path_.empty()) unlink(socket_path_.c_str());
  if (!folder_.empty()) rmdir(folder_.c_str());
}

bool Launch::connection_pending() const {
  pollfd waiting{listener_, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

Result<std::unique_ptr<Session>> Launch::next_session() {
  for (;;) {
    pollfd waiting[2] = {{listener_, POLLIN, 0}, {child_fd_, POLLIN, 0}};
    if (poll(waiting, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Error{fmt::format("cannot wait for the program: {}", std::strerror(errno))};
    }
    if ((waiting[0].revents & POLLIN) == 0) return std::unique_ptr<Session>();
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    SessionOptions options;
    options.process_end = [this](std::uint32_t pid) -> std::optional<ProcessEnd> {
      if (static_cast<int>(pid) != child_) return std::nullopt;
      return wait();
    };
    return Session::accept(fd, std::move(options));
  }
}

ProcessEnd Launch::wait() {
  const std::lock_guard lock(end_mutex_);
  if (end_.has_value()) return *end_;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
  end_ = WIFSIGNALED(status) ? ProcessEnd{true, WTERMSIG(status)}
                             : ProcessEnd{false, WEXITSTATUS(status)};
  return *end_;
}

}  // namespace heddle::collect
