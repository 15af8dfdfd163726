#include "trace/file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {
namespace {

Error failed(const std::string& path, const char* what, int code) {
  return Error{path + ": " + what + ": " + std::strerror(code)};
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InputFile> InputFile::open(const std::string& path) {
  InputFile file;
  file.path_ = path;
  // O_NONBLOCK: opening a FIFO must not wait for a writer. It means nothing to a regular file.
  file.fd_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd_.get() < 0) return failed(path, "cannot open", errno);
  struct stat facts = {};
  if (::fstat(file.fd_.get(), &facts) != 0) return failed(path, "cannot open", errno);
  if (!S_ISREG(facts.st_mode)) {
    return Error{path + ": is " + kind_of(facts.st_mode) + ", not a trace file"};
  }
  file.size_ = static_cast<std::uint64_t>(facts.st_size);
  return file;
}

Result<std::size_t> InputFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_, "cannot read", errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.fd_ = Descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (file.fd_.get() < 0) return failed(path, "cannot create", errno);
  struct stat facts = {};
  if (::fstat(file.fd_.get(), &facts) != 0) return failed(path, "cannot create", errno);
  if (!S_ISREG(facts.st_mode)) {
    return Error{path + ": is " + kind_of(facts.st_mode) + ", cannot hold a trace"};
  }
  // A trace holds what was in the program's memory: an old file's wider permissions do not last.
  if (::fchmod(file.fd_.get(), 0600) != 0 || ::ftruncate(file.fd_.get(), 0) != 0) {
    return failed(path, "cannot create", errno);
  }
  return file;
}

Status OutputFile::write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(path_, "cannot write", n == 0 ? ENOSPC : errno);
    done += static_cast<std::size_t>(n);
  }
  return Done{};
}

Status OutputFile::append(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body) {
  Status status = write_at(size_, head);
  if (status.ok()) status = write_at(size_ + head.size(), body);
  if (!status.ok()) {
    // If even this fails the reader finds a chunk that is cut off, and stops before it.
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) return status;
    return status;
  }
  size_ += head.size() + body.size();
  return Done{};
}

Status OutputFile::close() {
  // Some file systems report a full disk only here.
  if (fd_.get() >= 0 && ::close(fd_.release()) != 0 && errno != EINTR) {
    return failed(path_, "cannot write", errno);
  }
  return Done{};
}

}  // namespace heddle
