#include "trace/line_input.h"

#include <fmt/format.h>

namespace heddle {

std::optional<std::string_view> LineInput::next_across_blocks() {
  while (fill()) {
    if (const auto line = next_in_block()) return line;
  }
  if (error_ || begin_ == end_) return std::nullopt;
  const std::string_view last(buffer_.data() + begin_, end_ - begin_);
  begin_ = end_;
  ++line_number_;
  return last;
}

// Moves what is left to the front and reads on behind it.
bool LineInput::fill() {
  if (at_end_ || error_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ >= kLongestLine) {
    error_ = Error{fmt::format("{}:{}: a line longer than {} bytes; no trace has those",
                               file_.path(), line_number_ + 1, kLongestLine)};
    return false;
  }
  if (buffer_.size() < end_ + kBlock + kSlack) buffer_.resize(end_ + kBlock + kSlack);
  Result<std::size_t> read =
      file_.read(offset_, {reinterpret_cast<std::uint8_t*>(buffer_.data()) + end_, kBlock});
  if (!read.ok()) {
    error_ = read.error();
    return false;
  }
  at_end_ = *read < kBlock;
  offset_ += *read;
  end_ += *read;
  return *read > 0;
}

}  // namespace heddle
