// Runs a program under a collector: makes the socket, starts the program with HEDDLE_OPTIONS in its
// environment, hands out a Session for every process of it that connects.
//
// The socket lies in a folder that only the user can enter, and is gone when the Launch is.
#pragma once

#include "base/result.h"
#include "collect/session.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle::collect {

struct LaunchOptions {
  std::vector<std::string> command;  // program and arguments; looked up in PATH
  // Keys and values for HEDDLE_OPTIONS, after what the environment already has there.
  std::vector<std::pair<std::string, std::string>> runtime;
  int output_fd = -1;  // where its standard output and error go; -1: where ours go
};

class Launch {
 public:
  // An error says what cannot be run; `start_status` is what a shell would return for it (126,
  // 127).
  static Result<std::unique_ptr<Launch>> start(const LaunchOptions& options, int* start_status);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Waits for the next process that connects. A null session: the program has ended and nobody is
  // waiting to connect; more may come while its children live. An error is about one connection.
  Result<std::unique_ptr<Session>> next_session();

  // Whether somebody has asked to connect. For after the program has ended.
  bool connection_pending() const;

  // How the program ended; waits for it. Safe from several threads.
  ProcessEnd wait();

  std::uint32_t pid() const { return static_cast<std::uint32_t>(child_); }

 private:
  Launch() = default;

  std::string folder_;
  std::string socket_path_;
  int listener_ = -1;
  int child_ = -1;
  int child_fd_ = -1;  // readable when the child has ended
  std::mutex end_mutex_;
  std::optional<ProcessEnd> end_;
};

// What a shell returns for a process that ended like that.
inline int shell_status(const ProcessEnd& end) {
  return end.signalled ? 128 + end.value : end.value;
}

}  // namespace heddle::collect
