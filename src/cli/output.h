// What a verb prints: standard output or a file, buffered, with its errors kept.
//
// Whatever a trace brought along is for the reader, not for the terminal: control characters on
// their way to one are made visible.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace heddle::cli {

class Output {
 public:
  // Standard output. While it lives, a reader that goes away (`| head`) is not a signal.
  Output();
  // Standard error, for what must not mix with a program's own output.
  static Output standard_error();
  // A file, made or emptied.
  static Result<Output> create(const std::string& path);

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  int descriptor() const { return fd_; }
  // What is written was made printable already, and may hold colours.
  void keep_colours() { is_terminal_ = false; }

  void write(std::string_view text);
  // To append to; call flush_if_full() now and then.
  std::string& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= kBlock) flush();
  }
  // False when nobody reads any more, or writing failed: there is no point in going on.
  bool wanted() const { return !closed_ && !error_; }

  // Writes the rest. That the reader left early is not an error.
  Status finish();
  // Removes the file, because what is in it is not the whole.
  void discard();

 private:
  static constexpr std::size_t kBlock = 1u << 16;

  Output(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  void flush();

  int fd_;
  bool is_terminal_ = false;
  std::string path_;  // empty: one of the standard descriptors
  std::string buffer_;
  bool closed_ = false;
  int error_ = 0;
};

}  // namespace heddle::cli
