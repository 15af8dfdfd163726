// The lines of a file, read in large blocks.
//
// Behind the last byte of the buffer there is always slack that may be read (not used), so that a
// tokenizer can load a word at a time.
#pragma once

#include "base/result.h"
#include "trace/file.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class LineInput {
 public:
  static constexpr std::size_t kBlock = 1u << 20;
  static constexpr std::size_t kLongestLine = 1u << 24;
  static constexpr std::size_t kSlack = 64;

  explicit LineInput(InputFile file) : file_(std::move(file)), buffer_(kBlock + kSlack) {}

  const InputFile& file() const { return file_; }
  std::uint64_t line_number() const { return line_number_; }  // of the line that next() gave
  // Bytes taken so far.
  std::uint64_t position() const { return offset_ - (end_ - begin_); }

  // The next line without its line feed; nothing at the end or when reading failed (error()). Views
  // hold until the next call.
  std::optional<std::string_view> next() {
    if (const auto line = next_in_block()) return line;
    return next_across_blocks();
  }

  // The next line if it is in memory already; views that were given before still hold.
  std::optional<std::string_view> next_in_block() {
    const char* start = buffer_.data() + begin_;
    const void* feed = std::memchr(start, '\n', end_ - begin_);
    if (feed == nullptr) return std::nullopt;
    const auto length = static_cast<std::size_t>(static_cast<const char*>(feed) - start);
    begin_ += length + 1;
    ++line_number_;
    return std::string_view(start, length);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::string_view> next_across_blocks();
  bool fill();

  InputFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;  // in the file, of the byte at end_
  std::uint64_t line_number_ = 0;
  bool at_end_ = false;
  std::optional<Error> error_;
};

}  // namespace heddle
