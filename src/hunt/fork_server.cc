#include "hunt/fork_server.h"

#include "abi/runtime_options.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::hunt {
namespace {

constexpr int kStartMilliseconds = 5000;

// A number from the server within the time given (-1: any); nothing when there is none.
std::optional<int> receive_number(int fd, int milliseconds) {
  pollfd waiting{fd, POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&waiting, 1, milliseconds)) < 0 && errno == EINTR) continue;
  if (ready <= 0) return std::nullopt;
  int number = 0;
  ssize_t got = 0;
  while ((got = read(fd, &number, sizeof number)) < 0 && errno == EINTR) continue;
  if (got != static_cast<ssize_t>(sizeof number)) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ForkServer> ForkServer::start(const RunRequest& request, const StatusPage& page) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  ForkServer server;
  server.socket_ = ends[0];
  RunRequest serving = request;
  serving.timeout = 0;
  serving.runtime.emplace_back("server_fd", std::to_string(ends[1]));
  const Result<int> process = start_program(serving, page, ends[1]);
  close(ends[1]);
  if (!process.ok()) return std::nullopt;
  server.process_ = *process;
  // A program that some script started may serve, but its runs would not be the script's.
  const std::optional<int> hello = receive_number(server.socket_, kStartMilliseconds);
  if (!hello.has_value() || *hello != server.process_) return std::nullopt;
  return server;
}

ForkServer::ForkServer(ForkServer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), process_(std::exchange(other.process_, -1)) {}

ForkServer::~ForkServer() {
  if (socket_ >= 0) close(socket_);
  if (process_ < 0) return;
  kill(process_, SIGKILL);  // it waits at the socket, or is a script
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

Result<RunReport> ForkServer::run(const std::vector<std::pair<std::string, std::string>>& options,
                                  unsigned timeout, StatusPage& page) {
  page.clear();
  std::vector<std::pair<std::string, std::string>> all = options;
  if (timeout != 0) all.emplace_back("timeout", std::to_string(timeout));
  const std::string text = options_text(all);
  const Error gone{"the program's fork server is gone"};
  if (send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return gone;
  }
  const std::optional<int> child = receive_number(socket_, -1);
  if (!child.has_value()) return gone;
  constexpr unsigned kGrace = 2;  // seconds for the runtime to report the hang itself
  const int limit = timeout == 0 ? -1 : static_cast<int>((timeout + kGrace) * 1000);
  std::optional<int> status = receive_number(socket_, limit);
  const bool killed = !status.has_value();
  if (killed) {
    kill(*child, SIGKILL);
    status = receive_number(socket_, -1);
    if (!status.has_value()) return gone;
  }
  return report_of(*status, killed, *page.status());
}

}  // namespace heddle::hunt
