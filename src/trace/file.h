// Files as the trace code needs them: reading at offsets, appending whole pieces.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace heddle {

// A file descriptor that is closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// A regular file, opened for reading. Anything else (a directory, a FIFO, a device) is refused at
// once, without waiting for somebody to open its other end.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened

  // Reads up to out.size() bytes from `offset` on; fewer only at the end of the file.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> out) const;

 private:
  InputFile() = default;

  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

// A new file, readable by its owner only, that grows by whole pieces: when a piece does not fit
// (full disk, size limit), what was written of it is taken back.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  Status append(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body);
  Status close();

 private:
  OutputFile() = default;
  Status write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes);

  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace heddle
