#include "cli/output.h"

#include "base/printable.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {

Output::Output() : fd_(STDOUT_FILENO), is_terminal_(::isatty(STDOUT_FILENO) != 0) {
  std::signal(SIGPIPE, SIG_IGN);
}

Output Output::standard_error() {
  std::signal(SIGPIPE, SIG_IGN);
  return Output(STDERR_FILENO, {});
}

Result<Output> Output::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return Error{fmt::format("{}: cannot create: {}", path, std::strerror(errno))};
  return Output(fd, path);
}

Output::Output(Output&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      is_terminal_(other.is_terminal_),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      closed_(other.closed_),
      error_(other.error_) {}

Output::~Output() {
  if (fd_ >= 0 && !path_.empty()) ::close(fd_);
}

void Output::write(std::string_view text) {
  buffer_.append(text);
  flush_if_full();
}

void Output::flush() {
  if (is_terminal_) buffer_ = printable(buffer_);
  std::string_view rest = buffer_;
  while (wanted() && !rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

Status Output::finish() {
  flush();
  if (error_ == 0 && !path_.empty() && ::close(std::exchange(fd_, -1)) != 0) error_ = errno;
  if (error_ == 0) return Done{};
  const std::string standard = fd_ == STDERR_FILENO ? "standard error" : "standard output";
  return Error{
      fmt::format("{}: cannot write: {}", path_.empty() ? standard : path_, std::strerror(error_))};
}

void Output::discard() {
  buffer_.clear();
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace heddle::cli
